/*
 * The small readers against real objects: for every release a recording (tests/golden/objects) of a
 * process that says itself what is in it. With arguments, PID RELEASE, the same questions, from
 * stdin, go to a live process; the questions and all the bytes that were read for them come out as
 * the next recording.
 */
#include "pyabi/dicts.h"
#include "pyabi/integers.h"
#include "pyabi/strings.h"
#include "pyabi/thread_names.h"
#include "sampler/base/cleanup.h"
#include "sampler/target/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "skipped.h"

enum { LINE_SIZE = 1 << 18, THREADS_MAX = 4096 };

/* A process whose every read is kept. */
struct recorder {
    struct remote remote;
    struct remote *target;
    struct image_range *ranges;
    size_t count;
};

struct named_thread {
    uint64_t ident;
    char *name; /* hex */
};

/* Whom the questions go to. */
struct exam {
    struct remote *memory;
    const struct py_layout *release;
    struct py_layout resolved;
    const struct py_layout *layout; /* the resolved one */
    remote_addr interpreter, globals;
    struct named_thread threads[THREADS_MAX];
    size_t thread_count, expected_threads, questions;
    char question[128]; /* for messages */
};

#define CHECK(exam, condition)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_msg("%s, %s: not so: %s", (exam)->release->name, (exam)->question, #condition);   \
    } while (0)

static void recorder_keep(struct recorder *recorder, const struct remote_piece *piece, size_t size)
{
    void *copy = malloc(size + !size);
    recorder->ranges = realloc(recorder->ranges, (recorder->count + 1) * sizeof(*recorder->ranges));
    if (!copy || !recorder->ranges)
        abort();
    memcpy(copy, piece->into, size);
    recorder->ranges[recorder->count++] = (struct image_range){ piece->address, copy, size };
}

static int recorder_read(struct remote *self, const struct remote_piece *pieces, size_t count,
                         size_t *ret_tail)
{
    struct recorder *recorder = (struct recorder *)self;
    size_t tail = 0;
    int whole = recorder->target->read_pieces(recorder->target, pieces, count, &tail);
    for (int i = 0; i < whole; i++)
        recorder_keep(recorder, &pieces[i], pieces[i].size);
    if (whole >= 0 && (size_t)whole < count)
        recorder_keep(recorder, &pieces[whole], tail);
    if (ret_tail)
        *ret_tail = tail;
    return whole;
}

static void hex_encode(const void *bytes, size_t size, char *into)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = ((const uint8_t *)bytes)[i];
        *into++ = digits[byte >> 4];
        *into++ = digits[byte & 15];
    }
    *into = '\0';
}

static char *hex_new(const void *bytes, size_t size)
{
    char *hex = malloc(2 * size + 2);
    assert_non_null(hex);
    hex_encode(bytes, size, hex);
    return size ? hex : strcpy(hex, "-");
}

static remote_addr global_find(struct exam *exam, const char *name)
{
    remote_addr object = 0;
    CHECK(exam, dict_find(exam->memory, exam->layout, exam->globals, name, &object) == 0);
    return object;
}

/* Newer releases tell their offsets themselves. */
static void layout_learn(struct exam *exam, remote_addr runtime)
{
    struct failure why = { 0 };
    size_t size = exam->release->debug_offsets_size;
    AUTO_FREE uint8_t *table = malloc(size + !size);
    CHECK(exam, table);
    if (size)
        CHECK(exam, remote_read(exam->memory, runtime, table, size) == 0);
    CHECK(exam,
          layout_resolve(exam->release, size ? table : NULL, size, &exam->resolved, &why) == 0);
    exam->layout = &exam->resolved;
}

static void globals_find(struct exam *exam)
{
    remote_addr modules = 0, module = 0;
    const struct py_layout *layout = exam->layout;
    CHECK(exam, remote_read(exam->memory, exam->interpreter + offset_of(layout->interp.modules),
                            &modules, sizeof(modules)) == 0);
    CHECK(exam, dict_find(exam->memory, layout, modules, "__main__", &module) == 0);
    CHECK(exam, remote_read(exam->memory, module + offset_of(layout->module.dict), &exam->globals,
                            sizeof(exam->globals)) == 0);
}

static void check_integer(struct exam *exam, remote_addr object, const char *expected)
{
    int64_t value = 0;
    CHECK(exam, integer_read(exam->memory, exam->layout, object, &value) == 0);
    CHECK(exam, value == strtoll(expected, NULL, 10));
}

static void check_string(struct exam *exam, remote_addr object, const char *expected)
{
    AUTO_FREE char *text = NULL;
    CHECK(exam, string_read(exam->memory, exam->layout, object, &text) == 0);
    AUTO_FREE char *hex = hex_new(text, strlen(text));
    CHECK(exam, strcmp(hex, expected) == 0);
}

static void check_bytes(struct exam *exam, remote_addr object, const char *expected)
{
    AUTO_FREE uint8_t *data = NULL;
    size_t size = 0;
    CHECK(exam, bytes_read(exam->memory, exam->layout, object, 4096, &data, &size) == 0);
    AUTO_FREE char *hex = hex_new(data, size);
    CHECK(exam, strcmp(hex, expected) == 0);
    if (size)
        CHECK(exam,
              bytes_read(exam->memory, exam->layout, object, size - 1, &data, &size) == -EBADMSG);
}

struct dict_sum {
    struct exam *exam;
    int64_t count, values;
};

static int sum_entry(void *context, remote_addr key, remote_addr value)
{
    struct dict_sum *sum = context;
    int64_t number = 0;
    CHECK(sum->exam, key != 0);
    CHECK(sum->exam, integer_read(sum->exam->memory, sum->exam->layout, value, &number) == 0);
    sum->count++;
    sum->values += number;
    return 0;
}

static int stop_entry(void *context, remote_addr key, remote_addr value)
{
    (void)key, (void)value;
    ++*(int *)context;
    return 77;
}

static void check_dict(struct exam *exam, remote_addr dict, const char *count, const char *values)
{
    struct dict_sum sum = { exam, 0, 0 };
    int calls = 0;
    CHECK(exam, dict_walk(exam->memory, exam->layout, dict, sum_entry, &sum) == 0);
    CHECK(exam, sum.count == atoll(count));
    CHECK(exam, sum.values == atoll(values));
    CHECK(exam,
          dict_walk(exam->memory, exam->layout, dict, stop_entry, &calls) == (sum.count ? 77 : 0));
    CHECK(exam, calls == (sum.count ? 1 : 0));
}

static int collect_thread(void *context, uint64_t ident, const char *name)
{
    struct exam *exam = context;
    CHECK(exam, exam->thread_count < THREADS_MAX);
    exam->threads[exam->thread_count++] =
        (struct named_thread){ ident, hex_new(name, strlen(name)) };
    return 0;
}

static void check_thread(struct exam *exam, uint64_t ident, const char *expected)
{
    if (!exam->expected_threads++)
        CHECK(exam, thread_names_walk(exam->memory, exam->layout, exam->interpreter, collect_thread,
                                      exam) == 0);
    for (size_t i = 0; i < exam->thread_count; i++) {
        if (exam->threads[i].ident == ident) {
            CHECK(exam, strcmp(exam->threads[i].name, expected) == 0);
            return;
        }
    }
    CHECK(exam, !"a thread without a name");
}

/* Looked for in instances of different types with one memo, too: it must never mix them up. */
static void check_attribute(struct exam *exam, remote_addr object, const char *attribute,
                            const char *expected)
{
    struct attribute_memo memo = { 0 };
    remote_addr value = 0, other = global_find(exam, "instance_fresh");
    CHECK(exam, instance_find(exam->memory, exam->layout, object, attribute, &value) == 0);
    check_integer(exam, value, expected);
    instance_find_next(exam->memory, exam->layout, other, attribute, &memo, &value);
    for (int i = 0; i < 2; i++) {
        CHECK(exam, instance_find_next(exam->memory, exam->layout, object, attribute, &memo,
                                       &value) == 0);
        check_integer(exam, value, expected);
    }
}

static void check_type(struct exam *exam, remote_addr object, const char *expected)
{
    char name[64], small[2];
    CHECK(exam, type_name_read(exam->memory, exam->layout, object, name, sizeof(name)) == 0);
    CHECK(exam, strcmp(name, expected) == 0);
    CHECK(exam,
          type_name_read(exam->memory, exam->layout, object, small, sizeof(small)) == -EBADMSG);
}

static void check_refused(struct exam *exam, remote_addr object, const char *kind)
{
    int64_t value = 7;
    char *text = NULL;
    if (strcmp(kind, "too_large") == 0)
        CHECK(exam,
              integer_read(exam->memory, exam->layout, object, &value) == -ERANGE && value == 7);
    else
        CHECK(exam, string_read(exam->memory, exam->layout, object, &text) == -EBADMSG && !text);
}

static void check_absent(struct exam *exam, remote_addr object, const char *kind, const char *name)
{
    remote_addr value = 7;
    int error = strcmp(kind, "no_item") == 0
                    ? dict_find(exam->memory, exam->layout, object, name, &value)
                    : instance_find(exam->memory, exam->layout, object, name, &value);
    CHECK(exam, error == -ENOENT && value == 7);
}

static void check_item(struct exam *exam, remote_addr dict, const char *key, const char *expected)
{
    remote_addr value = 0;
    CHECK(exam, dict_find(exam->memory, exam->layout, dict, key, &value) == 0);
    check_integer(exam, value, expected);
}

/* One question: KIND NAME and one or two words of answer; NAME is a global of the process's
 * __main__. */
static void exam_ask(struct exam *exam, char *line)
{
    char *rest = NULL, *words[4] = { 0 };
    snprintf(exam->question, sizeof(exam->question), "%.*s", (int)strcspn(line, "\n"), line);
    for (size_t i = 0; i < 4; i++)
        words[i] = strtok_r(i ? NULL : line, " \n", &rest);
    CHECK(exam, words[1]);
    const char *kind = words[0];
    exam->questions++;
    if (strcmp(kind, "runtime") == 0) {
        layout_learn(exam, strtoull(words[1], NULL, 10));
        return;
    }
    if (strcmp(kind, "interpreter") == 0) {
        exam->interpreter = strtoull(words[1], NULL, 10);
        globals_find(exam);
        return;
    }
    if (strcmp(kind, "thread") == 0) {
        check_thread(exam, strtoull(words[1], NULL, 10), words[2]);
        return;
    }
    remote_addr object = global_find(exam, words[1]);
    if (strcmp(kind, "integer") == 0)
        check_integer(exam, object, words[2]);
    else if (strcmp(kind, "string") == 0)
        check_string(exam, object, words[2]);
    else if (strcmp(kind, "bytes") == 0)
        check_bytes(exam, object, words[2]);
    else if (strcmp(kind, "dict") == 0)
        check_dict(exam, object, words[2], words[3]);
    else if (strcmp(kind, "item") == 0)
        check_item(exam, object, words[2], words[3]);
    else if (strcmp(kind, "attribute") == 0)
        check_attribute(exam, object, words[2], words[3]);
    else if (strcmp(kind, "type") == 0)
        check_type(exam, object, words[2]);
    else if (strncmp(kind, "too_", 4) == 0)
        check_refused(exam, object, kind);
    else if (strncmp(kind, "no_", 3) == 0)
        check_absent(exam, object, kind, words[2]);
    else
        fail_msg("what is %s?", kind);
}

static void exam_end(struct exam *exam)
{
    snprintf(exam->question, sizeof(exam->question), "all");
    CHECK(exam, exam->questions > 0);
    CHECK(exam, exam->thread_count == exam->expected_threads);
    for (size_t i = 0; i < exam->thread_count; i++)
        free(exam->threads[i].name);
}

struct recording {
    struct image_range *ranges;
    size_t count;
    char **questions;
    size_t question_count;
};

static void recording_load(FILE *file, struct recording *recording)
{
    static char line[LINE_SIZE], hex[LINE_SIZE];
    while (fgets(line, sizeof(line), file)) {
        remote_addr address;
        if (sscanf(line, "range %" SCNx64 " %s", &address, hex) == 2) {
            size_t size = strlen(hex) / 2;
            uint8_t *bytes = malloc(size);
            assert_non_null(bytes);
            for (size_t i = 0; i < size; i++)
                assert_int_equal(1, sscanf(hex + 2 * i, "%2" SCNx8, bytes + i));
            recording->ranges =
                realloc(recording->ranges, (recording->count + 1) * sizeof(*recording->ranges));
            recording->ranges[recording->count++] = (struct image_range){ address, bytes, size };
        } else {
            recording->questions =
                realloc(recording->questions, (recording->question_count + 1) * sizeof(char *));
            recording->questions[recording->question_count++] = strdup(line);
        }
    }
}

static void recording_free(struct recording *recording)
{
    for (size_t i = 0; i < recording->count; i++)
        free((void *)recording->ranges[i].bytes);
    for (size_t i = 0; i < recording->question_count; i++)
        free(recording->questions[i]);
    free(recording->ranges);
    free(recording->questions);
}

/* Releases that nobody builds yet: named here, and shown as skipped. */
static const char *const unrecorded[] = { "3.15t" };

static bool is_unrecorded(const char *release)
{
    for (size_t i = 0; i < sizeof(unrecorded) / sizeof(unrecorded[0]); i++)
        if (strcmp(unrecorded[i], release) == 0)
            return true;
    return false;
}

static void test_recording(void **state)
{
    static struct exam exam;
    const struct py_layout *release = *state;
    char path[1024];
    snprintf(path, sizeof(path), "%.*s/../golden/objects/%s.txt",
             (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__, release->name);
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    if (!file && is_unrecorded(release->name))
        SKIP("no recording of this release");
    if (!file)
        fail_msg("no %s: make it with record.py beside it", path);
    CLEANUP(recording_free) struct recording recording = { 0 };
    recording_load(file, &recording);
    struct image_remote image;
    image_remote_init(&image, recording.ranges, recording.count);
    exam = (struct exam){ .memory = &image.remote, .release = release };
    for (size_t i = 0; i < recording.question_count; i++)
        exam_ask(&exam, recording.questions[i]);
    exam_end(&exam);
}

static int range_order(const void *a, const void *b)
{
    const struct image_range *left = a, *right = b;
    return left->address < right->address ? -1 : left->address > right->address;
}

/* Sorted, and without the bytes that an earlier range has already. */
static void ranges_write(struct image_range *ranges, size_t count)
{
    static char hex[LINE_SIZE];
    remote_addr end = 0;
    qsort(ranges, count, sizeof(*ranges), range_order);
    for (size_t i = 0; i < count; i++) {
        size_t skip = ranges[i].address < end ? (size_t)(end - ranges[i].address) : 0;
        if (skip >= ranges[i].size)
            continue;
        hex_encode((const uint8_t *)ranges[i].bytes + skip, ranges[i].size - skip, hex);
        printf("range %" PRIx64 " %s\n", ranges[i].address + skip, hex);
        end = ranges[i].address + ranges[i].size;
    }
}

static void recorder_done(struct recorder *recorder)
{
    for (size_t i = 0; i < recorder->count; i++)
        free((void *)recorder->ranges[i].bytes);
    free(recorder->ranges);
}

static int record(pid_t pid, const char *release)
{
    static char line[LINE_SIZE];
    static struct exam exam;
    struct process *process = NULL;
    struct failure why;
    if (process_open(pid, &process, &why)) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    CLEANUP(recorder_done)
    struct recorder recorder = { { recorder_read }, &process->memory, NULL, 0 };
    exam = (struct exam){ .memory = &recorder.remote };
    for (size_t i = 0; py_layouts[i]; i++)
        if (strcmp(py_layouts[i]->name, release) == 0)
            exam.release = py_layouts[i];
    if (!exam.release)
        return 2;
    while (fgets(line, sizeof(line), stdin)) {
        fputs(line, stdout);
        exam_ask(&exam, line);
    }
    exam_end(&exam);
    ranges_write(recorder.ranges, recorder.count);
    process_close(process);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return record(atoi(argv[1]), argv[2]);
    struct CMUnitTest tests[64] = { 0 };
    size_t count = 0;
    for (; py_layouts[count]; count++)
        tests[count] = (struct CMUnitTest){ py_layouts[count]->name, test_recording, NULL, NULL,
                                            (void *)(uintptr_t)py_layouts[count] };
    return _cmocka_run_group_tests("recordings", tests, count, NULL, NULL);
}
