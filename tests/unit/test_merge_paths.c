/* The same program below other folders, as on hosts with other home folders, is one when profiles
 * are merged; two files of one profile, or in one tree, never are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/model/merge.h"
#include "sampler/base/cleanup.h"
#include "tests/unit/made_file.h"

DEFINE_CLEANUP(struct report *, report_free)
#define AUTO_REPORT CLEANUP(report_freep)

#define NEAR 1e-9

enum { FILES_MAX = 4, PARTS_MAX = 3 };

static const char prog_text[] = "from lib import work\nfor i in range(9):\n    work(i)\n";
static const char work_text[] = "def work(n):\n    return sorted(range(n), key=price)\n";
static const char edited_text[] = "def work(n):\n    return price(n)\n";

/* Files, each line of which took a second, and a stack through the last of them. */
struct part {
    struct report report;
    struct report_file files[FILES_MAX];
    struct made_file *made[FILES_MAX];
    struct report_frame frame;
    const struct report_frame *frames[1];
    struct report_stack stack;
    char text[256];
    const char *texts[1];
    struct report_path path;
    struct report_leak leak;
};

static void part_done(struct part *part)
{
    for (size_t i = 0; i < FILES_MAX; i++)
        free(part->made[i]);
}

#define AUTO_PART CLEANUP(part_done)

static void part_add(struct part *part, const char *path, const char *text)
{
    size_t number = part->report.files.count++;
    struct made_file *made = part->made[number] = made_file_new(path, text);
    for (size_t i = 1; i <= made->file.lines.count; i++)
        made_file_spend(made, i, 1);
    part->files[number] = made->file;
    part->report.files.items = part->files;
}

/* Of the last file that was added. */
static void part_end(struct part *part, double start)
{
    struct report_file *file = &part->files[part->report.files.count - 1];
    part->report.profiler_name = "scalene-attach";
    part->report.program = part->files[0].path;
    part->report.start_time_absolute = start;
    part->report.elapsed_time_sec = 1;
    part->report.totals.elapsed_s = part->report.totals.cpu_python_s = 1;
    part->frame = (struct report_frame){ "py", "work", file->path, 2, -1, -1 };
    part->frames[0] = &part->frame;
    part->stack = (struct report_stack){ .frames = { part->frames, 1 }, .hits = 1 };
    part->report.combined_stacks.items = &part->stack;
    part->report.combined_stacks.count = 1;
    snprintf(part->text, sizeof part->text, "%s work:2;", file->path);
    part->texts[0] = part->text;
    part->path = (struct report_path){ .frames = { part->texts, 1 }, .count = 1 };
    part->report.stacks.items = &part->path;
    part->report.stacks.count = 1;
    part->leak = (struct report_leak){ "2", 0.9, 1, 1, { part->texts, 1 } };
    file->leaks.items = &part->leak;
    file->leaks.count = 1;
    part->report.max_footprint_fname = file->path;
    part->report.max_footprint_mb = 1;
}

static struct report *merge(const struct part *const *parts, size_t count, bool backwards)
{
    const struct report *reports[PARTS_MAX];
    struct report *merged = NULL;
    for (size_t i = 0; i < count; i++)
        reports[i] = &parts[backwards ? count - 1 - i : i]->report;
    assert_int_equal(report_merge(reports, count, "1.2.3", &merged), 0);
    return merged;
}

/* As "/a.py=3 /b.py=2": each path and the seconds of its lines. Whatever the order of the parts. */
static void check(const struct part *const *parts, size_t count, const char *told, const char *note)
{
    for (int backwards = 0; backwards < 2; backwards++) {
        AUTO_REPORT struct report *merged = merge(parts, count, backwards);
        char got[1024] = "";
        bool is_noted = !note;
        for (size_t i = 0, used = 0; i < merged->files.count; i++) {
            const struct report_file *file = &merged->files.items[i];
            double sum = 0;
            for (size_t n = 0; n < file->lines.count; n++)
                sum += file->lines.items[n].cpu_python_s;
            used += (size_t)snprintf(got + used, sizeof got - used, "%s%s=%g", i ? " " : "",
                                     file->path, sum);
        }
        assert_string_equal(got, told);
        for (size_t i = 0; i < merged->notes.count; i++) {
            is_noted |= note && strstr(merged->notes.items[i], note);
            assert_false(!note && strstr(merged->notes.items[i], "two paths"));
        }
        assert_true(is_noted);
    }
}

/* Two hosts: the path on the one that ran last is kept, in stacks and leaks, too. */
static void test_homes(void **state)
{
    (void)state;
    AUTO_PART struct part here = { 0 }, there = { 0 };
    part_add(&here, "/home/al/app/prog.py", prog_text);
    part_add(&here, "/home/al/app/my lib/work.py", work_text);
    part_end(&here, 2);
    part_add(&there, "/scratch/app/prog.py", prog_text);
    part_add(&there, "/scratch/app/my lib/work.py", work_text);
    part_end(&there, 1);
    const struct part *const parts[] = { &here, &there };
    check(parts, 2, "/home/al/app/my lib/work.py=4 /home/al/app/prog.py=6",
          "same content under two paths: /scratch/app/my lib/work.py counts as "
          "/home/al/app/my lib/work.py here, one of 2 such paths");
    for (int backwards = 0; backwards < 2; backwards++) {
        AUTO_REPORT struct report *merged = merge(parts, 2, backwards);
        const struct report_file *file = &merged->files.items[0];
        assert_int_equal(merged->combined_stacks.count, 1);
        assert_int_equal(merged->combined_stacks.items[0].hits, 2);
        assert_string_equal(merged->combined_stacks.items[0].frames.items[0]->filename_or_module,
                            file->path);
        assert_int_equal(merged->stacks.count, 1);
        assert_string_equal(merged->stacks.items[0].frames.items[0],
                            "/home/al/app/my lib/work.py work:2;");
        assert_string_equal(file->leaks.items[0].stack.items[0],
                            "/home/al/app/my lib/work.py work:2;");
        assert_string_equal(merged->max_footprint_fname, file->path);
        assert_string_equal(merged->program, "/home/al/app/prog.py");
        assert_int_equal(file->functions.count, 1);
        assert_float_equal(file->functions.items[0].cpu_python_s, 4, NEAR);
        for (size_t i = 0; i < merged->notes.count; i++)
            assert_null(strstr(merged->notes.items[i], "different programs"));
    }
}

/* What was edited on a host, has no source there, or is equal to another one, has its place. */
static void test_place_in_tree(void **state)
{
    (void)state;
    AUTO_PART struct part here = { 0 }, there = { 0 };
    part_add(&here, "/A/prog.py", prog_text);
    part_add(&here, "/A/a/__init__.py", work_text);
    part_add(&here, "/A/b/__init__.py", work_text);
    part_add(&here, "/A/edited.py", edited_text);
    part_end(&here, 1);
    part_add(&there, "/B/prog.py", prog_text);
    part_add(&there, "/B/a/__init__.py", work_text);
    part_add(&there, "/B/b/__init__.py", work_text);
    part_add(&there, "/B/edited.py", "x = 1\n");
    part_end(&there, 2);
    const struct part *const parts[] = { &here, &there };
    check(parts, 2, "/B/a/__init__.py=4 /B/b/__init__.py=4 /B/edited.py=3 /B/prog.py=6",
          "/A/a/__init__.py counts as /B/a/__init__.py here, one of 4 such paths");
}

/* Three hosts are one file each, also where a path is known from another one. */
static void test_three(void **state)
{
    (void)state;
    AUTO_PART struct part first = { 0 }, second = { 0 }, third = { 0 };
    part_add(&first, "/A/prog.py", prog_text);
    part_end(&first, 1);
    part_add(&second, "/B/prog.py", prog_text);
    part_add(&second, "/B/work.py", work_text);
    part_end(&second, 2);
    part_add(&third, "/C/prog.py", prog_text);
    part_add(&third, "/C/work.py", edited_text);
    part_end(&third, 3);
    const struct part *const parts[] = { &first, &second, &third };
    check(parts, 3, "/C/prog.py=9 /C/work.py=4",
          "/B/prog.py counts as /C/prog.py here, one of 3 such paths");
}

/* A profile that has both knows that they are two, of other profiles as well. */
static void test_both_in_one(void **state)
{
    (void)state;
    AUTO_PART struct part first = { 0 }, second = { 0 }, both = { 0 };
    part_add(&first, "/A/prog.py", prog_text);
    part_end(&first, 2);
    part_add(&second, "/B/prog.py", prog_text);
    part_end(&second, 3);
    part_add(&both, "/A/prog.py", prog_text);
    part_add(&both, "/B/prog.py", prog_text);
    part_end(&both, 1);
    const struct part *const parts[] = { &first, &second, &both };
    check(parts, 3, "/A/prog.py=6 /B/prog.py=6", NULL);
}

/* Places in one tree, which both profiles have, and files of other names, are said to be alike. */
static void test_apart(void **state)
{
    (void)state;
    AUTO_PART struct part here = { 0 }, there = { 0 }, other = { 0 }, none = { 0 };
    part_add(&here, "/p/main.py", prog_text);
    part_add(&here, "/p/a/conf.py", work_text);
    part_end(&here, 1);
    part_add(&there, "/p/main.py", prog_text);
    part_add(&there, "/p/b/conf.py", work_text);
    part_end(&there, 2);
    const struct part *const parts[] = { &here, &there };
    check(parts, 2, "/p/a/conf.py=2 /p/b/conf.py=2 /p/main.py=6",
          "same content under two paths: /p/b/conf.py and /p/a/conf.py stay two files");
    part_add(&other, "/q/copy.py", work_text);
    part_end(&other, 3);
    const struct part *const renamed[] = { &here, &other };
    check(renamed, 2, "/p/a/conf.py=2 /p/main.py=3 /q/copy.py=2", "stay two files");
    part_add(&none, "/q/conf.py", "limits = 1, 2\nnames = []\n");
    part_end(&none, 3);
    const struct part *const others[] = { &there, &none };
    check(others, 2, "/p/b/conf.py=2 /p/main.py=3 /q/conf.py=2", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_homes), cmocka_unit_test(test_place_in_tree),
        cmocka_unit_test(test_three), cmocka_unit_test(test_both_in_one),
        cmocka_unit_test(test_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
