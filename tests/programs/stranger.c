/* A child that is no Python, built by tests in ways in which it cannot have the shim. */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    void *block = malloc(100);
    puts(block ? "as ever" : "out of memory");
    free(block);
    return 0;
}
