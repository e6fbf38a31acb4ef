#define _GNU_SOURCE 1 /* struct link_map */

#include "sampler/loop/loaded_list.h"

#include "sampler/base/cleanup.h"
#include "sampler/loop/c_library.h"
#include "symbols/elf_file.h"

#include <link.h>

enum { OBJECTS_MOST = 16384 };

struct loaded_list {
    struct process *process;
    remote_addr at; /* the loader's struct r_debug */
    uint64_t seen;
};

DEFINE_CLEANUP(struct elf_file *, elf_file_close)

static remote_addr list_find(const struct process *process, const struct mapping *loader)
{
    CLEANUP(elf_file_closep) struct elf_file *file = NULL;
    remote_addr bias;
    uint64_t value, size;
    if (elf_file_open_mapping(process->proc_fd, loader, &file) ||
        elf_file_bias(file, loader, &bias) ||
        elf_file_find_exported(file, "_r_debug", &value, &size))
        return 0;
    return bias + value;
}

int loaded_list_open(struct process *process, const struct maps *maps, struct loaded_list **ret)
{
    remote_addr at = 0;
    for (size_t i = 0; i < maps->count && !at; i++)
        if (is_loader(&maps->list[i]))
            at = list_find(process, &maps->list[i]);
    if (!at)
        return -ENOENT;
    struct loaded_list *list = calloc(1, sizeof *list);
    if (!list)
        return -ENOMEM;
    *list = (struct loaded_list){ .process = process, .at = at };
    *ret = list;
    return 0;
}

void loaded_list_close(struct loaded_list *list)
{
    free(list);
}

static uint64_t sum_add(uint64_t sum, uint64_t word)
{
    return (sum ^ word) * 0x100000001B3u;
}

/* 0: it cannot be read whole. */
static uint64_t list_sum(struct loaded_list *list)
{
    struct remote *memory = &list->process->memory;
    struct r_debug head;
    struct link_map object;
    uint64_t sum = 0xCBF29CE484222325u;
    if (remote_read(memory, list->at, &head, sizeof head) || head.r_state != RT_CONSISTENT)
        return 0;
    remote_addr at = (uintptr_t)head.r_map;
    for (int i = 0; at && i < OBJECTS_MOST; i++) {
        if (remote_read(memory, at, &object, sizeof object))
            return 0;
        sum = sum_add(sum_add(sum_add(sum, at), object.l_addr), (uintptr_t)object.l_ld);
        at = (uintptr_t)object.l_next;
    }
    return sum;
}

bool loaded_list_look(struct loaded_list *list)
{
    uint64_t sum = list_sum(list);
    if (!sum || sum == list->seen)
        return false;
    list->seen = sum;
    return true;
}
