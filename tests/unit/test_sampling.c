/* Poisson sampling by bytes: that the weights of samples add up to what was allocated, whatever the
 * sizes are. */
#include "sampler/shim/sampling.h"

#include <math.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { WINDOW = 10000 };

static double exact_weight(double size, double window)
{
    return size / -expm1(-size / window);
}

/* Within the rounding to whole bytes. */
static void test_weight(void **state)
{
    (void)state;
    for (uint64_t window = 1; window < (uint64_t)1 << 32; window *= 7)
        for (uint64_t size = 1; size < (uint64_t)1 << 45; size = size * 5 / 3 + 1) {
            double wanted = exact_weight((double)size, (double)window);
            double found = (double)sampling_weight(size, window);
            assert_true(fabs(found - wanted) <= 0.5 + 1e-9 * wanted);
        }
    assert_int_equal(sampling_weight(0, WINDOW), 0);
}

/* Mean and share beyond the mean of an exponential distribution; five standard errors. */
static void test_distance(void **state)
{
    (void)state;
    enum { DRAWS = 200000 };
    uint64_t random = 12345;
    double sum = 0;
    int beyond = 0;
    for (int i = 0; i < DRAWS; i++) {
        int64_t distance = sampling_distance(&random, WINDOW);
        assert_true(distance >= 0);
        sum += (double)distance;
        beyond += distance >= WINDOW;
    }
    assert_true(fabs(sum / DRAWS / WINDOW - 1) < 5 / sqrt(DRAWS));
    double share = exp(-1);
    assert_true(fabs((double)beyond / DRAWS - share) < 5 * sqrt(share * (1 - share) / DRAWS));
}

static double sampled_sum(uint64_t *random, uint64_t size, int count, double *ret_variance)
{
    double sum = 0;
    int64_t countdown = sampling_distance(random, WINDOW);
    double weight = (double)sampling_weight(size, WINDOW);
    double chance = (double)size / weight;
    for (int i = 0; i < count; i++) {
        countdown -= (int64_t)size;
        if (countdown < 0) {
            sum += weight;
            countdown = sampling_distance(random, WINDOW);
        }
    }
    *ret_variance = count * weight * weight * chance * (1 - chance);
    return sum;
}

/* From sizes far below the window to those far above, where every block is a sample. */
static void test_sums(void **state)
{
    (void)state;
    uint64_t random = 99;
    const uint64_t sizes[] = { 1, 100, 3333, WINDOW, 5 * WINDOW, 50 * WINDOW };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int count = (int)(2000 * WINDOW / sizes[i]) + 1000;
        double variance, sum = sampled_sum(&random, sizes[i], count, &variance);
        assert_true(fabs(sum - (double)count * (double)sizes[i]) <= 5 * sqrt(variance) + count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weight),
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
