#define _GNU_SOURCE 1 /* process_vm_readv */

#include "sampler/target/memory.h"

#include "sampler/target/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BATCH = 1024 }; /* IOV_MAX of the kernel */

/* How many pieces `got` bytes fill, and what is left over for the next. */
static int pieces_filled(const struct remote_piece *pieces, size_t count, size_t got,
                         size_t *ret_tail)
{
    size_t i = 0;
    while (i < count && got >= pieces[i].size)
        got -= pieces[i++].size;
    *ret_tail = got;
    return (int)i;
}

static int batch_read_by_call(struct process *process, const struct remote_piece *pieces,
                              size_t count, size_t *ret_tail)
{
    struct iovec here[BATCH], there[BATCH];
    size_t i = 0;
    do { /* there is at least one */
        here[i] = (struct iovec){ pieces[i].into, pieces[i].size };
        there[i] = (struct iovec){ (void *)(uintptr_t)pieces[i].address, pieces[i].size };
    } while (++i < count);
    process->read_calls++;
    ssize_t got = process_vm_readv(process->pid, here, count, there, count, 0);
    if (got < 0 && errno != EFAULT && errno != EINVAL)
        return -errno;
    return pieces_filled(pieces, count, got < 0 ? 0 : (size_t)got, ret_tail);
}

/* Bytes read, or -ESRCH. */
static ssize_t piece_read_by_file(struct process *process, const struct remote_piece *piece)
{
    size_t done = 0;
    while (done < piece->size) {
        process->read_calls++;
        ssize_t got = pread(process->memory_fd, (char *)piece->into + done, piece->size - done,
                            (off_t)(piece->address + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        if (got == 0) /* the file outlives the memory it shows, and is empty then */
            return -ESRCH;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static int batch_read_by_file(struct process *process, const struct remote_piece *pieces,
                              size_t count, size_t *ret_tail)
{
    for (size_t i = 0; i < count; i++) {
        ssize_t got = piece_read_by_file(process, &pieces[i]);
        if (got < 0)
            return (int)got;
        if ((size_t)got < pieces[i].size) {
            *ret_tail = (size_t)got;
            return (int)i;
        }
    }
    return (int)count;
}

static int batch_read(struct process *process, const struct remote_piece *pieces, size_t count,
                      size_t *ret_tail)
{
    if (!process->reads_by_file) {
        int whole = batch_read_by_call(process, pieces, count, ret_tail);
        if (whole != -EPERM && whole != -ENOSYS)
            return whole;
        /* Our own sandbox may forbid the call and still allow the file; the kernel's check is the
         * same. */
        if (process->memory_fd < 0)
            return -EPERM;
        process->reads_by_file = true;
    }
    return batch_read_by_file(process, pieces, count, ret_tail);
}

int memory_read_pieces(struct remote *self, const struct remote_piece *pieces, size_t count,
                       size_t *ret_tail)
{
    struct process *process = (struct process *)self;
    for (size_t done = 0; done < count;) {
        size_t batch = count - done < BATCH ? count - done : BATCH;
        size_t tail = 0;
        int whole = batch_read(process, pieces + done, batch, &tail);
        if (whole < 0)
            return whole;
        done += (size_t)whole;
        if ((size_t)whole == batch)
            continue;
        /* An address that is gone because its process is (an exec has other addresses) is no bad
         * address. */
        if (process_check(process))
            return -ESRCH;
        if (ret_tail)
            *ret_tail = tail;
        return (int)done;
    }
    return (int)count;
}
