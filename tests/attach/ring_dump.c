/*
 * Launches a command with the shim and writes what comes out of the ring, a line an event:
 * time_ns, pid, tid, change, block, size, weight, "python" or "native", and a field for each frame,
 * innermost first: line, function, file. TABs between them. Last line: "lost", its records, and
 * bytes allocated, freed, copied. Use: ring_dump LIBRARY WINDOW COPY_WINDOW OUTPUT COMMAND ARGS…
 */
#include "sampler/app/preload.h"
#include "sampler/app/shim_folder.h"
#include "sampler/base/cleanup.h"
#include "sampler/base/clock_read.h"
#include "sampler/loop/ring_reader.h"

#include <inttypes.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { SLOTS = 1 << 17, PERIOD_MS = 5, OWN_FAILURE = 125 };

struct dump {
    struct ring_sink sink;
    FILE *out;
};

static int event_write(struct ring_sink *sink, const struct memory_event *event)
{
    FILE *out = ((struct dump *)sink)->out;
    fprintf(out, "%" PRIu64 "\t%d\t%d\t%s\t%" PRIu64 "\t%" PRIu64 "\t%.0f\t%s", event->time_ns,
            (int)event->pid, (int)event->tid, memory_change_name(event->change), event->block,
            event->size_bytes, event->weight_bytes, event->python ? "python" : "native");
    for (size_t i = 0; i < event->frame_count; i++)
        fprintf(out, "\t%d\t%s\t%s", event->frames[i].line, event->frames[i].name,
                event->frames[i].file);
    fputc('\n', out);
    return 0;
}

/* Until the command has ended and all that it wrote by then is read, and once more after the
 * reader's patience with records that were begun. */
static int command_follow(pid_t pid, struct ring_reader *reader, struct dump *dump)
{
    int status;
    AUTO_CLOSE int ended = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd end = { .fd = ended, .events = POLLIN };
    while (poll(&end, 1, PERIOD_MS) == 0)
        ring_reader_drain(reader, clock_ns(CLOCK_MONOTONIC), &dump->sink);
    ring_reader_drain(reader, clock_ns(CLOCK_MONOTONIC), &dump->sink);
    ring_reader_drain(reader, clock_ns(CLOCK_MONOTONIC) + 2 * RING_PATIENCE_NS, &dump->sink);
    ring_reader_drain(reader, clock_ns(CLOCK_MONOTONIC) + 4 * RING_PATIENCE_NS, &dump->sink);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int command_run(struct ring_reader *reader, const char *library, const char *output,
                       char **argv, struct failure *why)
{
    struct shim_folder *folder = NULL;
    struct memory_loss_event loss;
    AUTO_FCLOSE FILE *out = fopen(output, "w");
    struct dump dump = { .sink.memory = event_write, .out = out };
    pid_t pid;
    if (!out || shim_folder_open(library, ring_reader_fd(reader), &folder, why))
        return OWN_FAILURE;
    char **environment = preload_environment(shim_folder_preload(folder));
    ring_reader_arm(reader, true);
    int status = environment && !posix_spawnp(&pid, argv[0], NULL, NULL, argv, environment)
                     ? command_follow(pid, reader, &dump)
                     : OWN_FAILURE;
    ring_reader_losses(reader, &loss);
    fprintf(out, "lost\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
            loss.records, loss.lost, loss.allocated_bytes, loss.freed_bytes, loss.copied_bytes);
    shim_folder_close(folder, false);
    free(environment);
    return status;
}

int main(int argc, char **argv)
{
    struct failure why = { 0 };
    struct ring_reader *reader = NULL;
    if (argc < 6)
        return OWN_FAILURE;
    const struct ring_settings settings = {
        .slot_count = SLOTS,
        .window = strtoull(argv[2], NULL, 10),
        .copy_window = strtoull(argv[3], NULL, 10),
        .start_ns = clock_ns(CLOCK_MONOTONIC),
    };
    if (ring_reader_new(&settings, &reader, &why))
        return OWN_FAILURE;
    int status = command_run(reader, argv[1], argv[4], argv + 5, &why);
    ring_reader_free(reader);
    return status;
}
