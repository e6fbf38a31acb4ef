#include "sampler/shim/sampling.h"

#include <string.h>

uint64_t random_next(uint64_t *random)
{
    /* xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators") */
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    return *random * 0x2545F4914F6CDD1Du;
}

/* Natural logarithm of a positive, normal number: the exponent's part, and for the mantissa in
 * [0.7, 1.42) the series of artanh, whose next term is below 1e-13. */
static double logarithm(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFFu) | (uint64_t)1023 << 52;
    double mantissa;
    memcpy(&mantissa, &bits, sizeof mantissa);
    if (mantissa > 1.4142135623730951) {
        mantissa /= 2;
        exponent++;
    }
    double s = (mantissa - 1) / (mantissa + 1), square = s * s, sum = 0;
    for (int n = 15; n >= 1; n -= 2)
        sum = sum * square + 1.0 / n;
    return 2 * s * sum + exponent * 0.6931471805599453;
}

/* 1 - exp(-x) without cancellation where x is small: Taylor for x / 2^k, then
 * f(2x) = f(x) (2 - f(x)). */
static double share_sampled(double x)
{
    int doublings = 0;
    if (x > 40)
        return 1;
    for (; x > 1.0 / 64; doublings++)
        x /= 2;
    double share = x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5))));
    for (; doublings; doublings--)
        share *= 2 - share;
    return share;
}

int64_t sampling_distance(uint64_t *random, uint64_t window)
{
    /* 53 bits, and never 0 */
    double uniform = ((double)(random_next(random) >> 11) + 0.5) * 0x1p-53;
    return (int64_t)(-logarithm(uniform) * (double)window);
}

uint64_t sampling_weight(uint64_t size, uint64_t window)
{
    if (!size)
        return 0;
    return (uint64_t)((double)size / share_sampled((double)size / (double)window) + 0.5);
}
