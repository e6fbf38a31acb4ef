#include "output/model/leaks.h"

enum {
    FIRST_SHIFT = 20, /* 1 ms */
    QUARTERS = 4,
    EPOCHS_LEAST = 2 * QUARTERS,
    STAY_EPOCHS = 4,
    SPAN_PART = 4, /* a line that allocated in less than this part of the run has only begun */
    END_PART = 8,  /* an interpreter that ends takes no longer */
};

static size_t epoch_of(const struct survival *survival, uint64_t time_ns)
{
    return time_ns > survival->first_ns ? (time_ns - survival->first_ns) >> survival->shift : 0;
}

static double less(double a, double b)
{
    return a < b ? a : b;
}

static void epochs_double(struct survival *survival)
{
    for (size_t i = 0; i < LEAK_EPOCHS / 2; i++) {
        size_t second = 2 * i + 1;
        survival->alive[i] = survival->alive[2 * i] + survival->alive[second];
        survival->floor_bytes[i] = second <= survival->epoch ? less(survival->floor_bytes[2 * i],
                                                                    survival->floor_bytes[second])
                                                             : survival->floor_bytes[2 * i];
    }
    for (size_t i = LEAK_EPOCHS / 2; i < LEAK_EPOCHS; i++)
        survival->alive[i] = 0;
    survival->epoch /= 2;
    survival->shift++;
}

/* The fewest survivors of a quarter, over all. */
static bool judge(const struct survival *survival, uint64_t now_ns, double live_bytes,
                  struct leak *ret)
{
    size_t epochs = epoch_of(survival, survival->last_ns) + 1;
    uint64_t span_ns = survival->last_ns - survival->first_ns, fewest = UINT64_MAX;
    if (epochs < EPOCHS_LEAST || span_ns < now_ns / SPAN_PART)
        return false;
    for (size_t quarter = 0; quarter < QUARTERS; quarter++) {
        uint64_t count = 0;
        for (size_t i = quarter * epochs / QUARTERS; i < (quarter + 1) * epochs / QUARTERS; i++)
            count += survival->alive[i];
        fewest = count < fewest ? count : fewest;
    }
    double seconds = (double)span_ns / 1e9;
    double held = less(survival->floor_bytes[survival->epoch], live_bytes);
    *ret = (struct leak){ 1 - 1 / (double)(QUARTERS * fewest + 2), held, held / seconds };
    return ret->likelihood >= LEAK_LIKELIHOOD;
}

/* To the epoch of that time. What was live since the last change was so in all epochs between. */
static void epochs_go_on(struct survival *survival, uint64_t time_ns, double live_bytes)
{
    struct leak leak;
    if (epoch_of(survival, time_ns) <= survival->epoch)
        return;
    if (judge(survival, time_ns, live_bytes, &leak)) {
        survival->held = leak;
        survival->held_ns = time_ns;
    }
    while (epoch_of(survival, time_ns) >= LEAK_EPOCHS)
        epochs_double(survival);
    while (survival->epoch < epoch_of(survival, time_ns))
        survival->floor_bytes[++survival->epoch] = live_bytes;
}

void survival_add(struct survival *survival, uint64_t time_ns, double live_bytes)
{
    if (!survival->begun)
        *survival = (struct survival){
            .first_ns = time_ns, .last_ns = time_ns, .shift = FIRST_SHIFT, .begun = true
        };
    epochs_go_on(survival, time_ns, live_bytes);
    survival->last_ns = time_ns > survival->last_ns ? time_ns : survival->last_ns;
    survival->alive[epoch_of(survival, time_ns)]++;
}

void survival_remove(struct survival *survival, uint64_t born_ns, uint64_t time_ns,
                     double live_bytes, double left_bytes, bool whole)
{
    epochs_go_on(survival, time_ns, live_bytes);
    survival->alive[epoch_of(survival, born_ns)] -= whole;
    double *floor = &survival->floor_bytes[survival->epoch];
    *floor = less(*floor, left_bytes);
}

/* What is live now has been so since the last change. */
static double floor_at(const struct survival *survival, size_t epoch, double live_bytes)
{
    return epoch <= survival->epoch ? survival->floor_bytes[epoch] : live_bytes;
}

double survival_growth(const struct survival *survival, uint64_t now_ns, double live_bytes)
{
    double most = 0;
    if (!survival->begun)
        return 0;
    size_t now = epoch_of(survival, now_ns), last = survival->epoch + STAY_EPOCHS;
    for (size_t end = STAY_EPOCHS; end <= now + 1 && end <= last + 1; end++) {
        double least = floor_at(survival, end - STAY_EPOCHS, live_bytes);
        for (size_t i = end - STAY_EPOCHS + 1; i < end; i++)
            least = less(least, floor_at(survival, i, live_bytes));
        most = least > most ? least : most;
    }
    return most;
}

bool survival_leaks(const struct survival *survival, uint64_t now_ns, double live_bytes,
                    struct leak *ret)
{
    if (!survival->begun)
        return false;
    if (judge(survival, now_ns, live_bytes, ret))
        return true;
    if (!survival->held_ns || now_ns - survival->held_ns > now_ns / END_PART)
        return false;
    *ret = survival->held;
    return true;
}
