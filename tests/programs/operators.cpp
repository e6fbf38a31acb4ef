/* Allocates so many bytes by each operator new there is, after each has refused what nobody has,
 * and gives back every second block by the operator delete that belongs to it. As a program, or as
 * a library that is loaded when all else is there. */
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>

enum { TIMES = 4000, SIZE = 3000, FORMS = 12 };

static const std::align_val_t alignment{ 64 };
static char *blocks[TIMES];

static void *block_make(int form, size_t size)
{
    switch (form) {
    case 0:
    case 1:
        return ::operator new(size);
    case 2:
    case 3:
        return ::operator new[](size);
    case 4:
        return ::operator new(size, std::nothrow);
    case 5:
        return ::operator new[](size, std::nothrow);
    case 6:
    case 7:
        return ::operator new(size, alignment);
    case 8:
    case 9:
        return ::operator new[](size, alignment);
    case 10:
        return ::operator new(size, alignment, std::nothrow);
    default:
        return ::operator new[](size, alignment, std::nothrow);
    }
}

static void block_drop(int form, void *block)
{
    switch (form) {
    case 0:
        return ::operator delete(block);
    case 1:
        return ::operator delete(block, SIZE);
    case 2:
        return ::operator delete[](block);
    case 3:
        return ::operator delete[](block, SIZE);
    case 4:
        return ::operator delete(block, std::nothrow);
    case 5:
        return ::operator delete[](block, std::nothrow);
    case 6:
        return ::operator delete(block, alignment);
    case 7:
        return ::operator delete(block, SIZE, alignment);
    case 8:
        return ::operator delete[](block, alignment);
    case 9:
        return ::operator delete[](block, SIZE, alignment);
    case 10:
        return ::operator delete(block, alignment, std::nothrow);
    default:
        return ::operator delete[](block, alignment, std::nothrow);
    }
}

static bool is_refused(int form)
{
    try {
        return !block_make(form, SIZE_MAX / 4);
    } catch (const std::bad_alloc &) {
        return true;
    }
}

/* How many bytes it has asked for and got; half of that is left. mimalloc aborts where it has to
 * refuse. */
extern "C" int operators_pass(int refuse)
{
    for (int form = 0; form < FORMS && refuse; form++)
        if (!is_refused(form))
            return -1;
    for (int i = 0; i < TIMES; i++)
        memset(blocks[i] = (char *)block_make(i / 2 % FORMS, SIZE), i, SIZE);
    for (int i = 0; i < TIMES; i += 2)
        block_drop(i / 2 % FORMS, blocks[i]);
    for (int i = 1; i < TIMES; i += 2)
        if (blocks[i][SIZE - 1] != (char)i)
            return -1;
    return TIMES * SIZE;
}

int main(int argc, char **)
{
    printf("%d\n", operators_pass(argc == 1));
    return 0;
}
