#include "symbols/object_symbols.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/error.h"
#include "symbols/debug_file.h"

#include <string.h>

static void object_free(struct object_symbols *object)
{
    source_lines_close(object->lines);
    symbol_table_done(&object->symbols);
    elf_file_close(object->debug);
    elf_file_close(object->file);
    free(object->bytes);
    free(object);
}

static bool file_has_symtab(const struct elf_file *file)
{
    Elf *elf = elf_file_handle(file);
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        Elf64_Shdr *header = elf64_getshdr(section);
        if (header && header->sh_type == SHT_SYMTAB)
            return true;
    }
    return false;
}

/* What is missing afterwards stays missing: an object without readable symbols is an ordinary
 * thing. `path` NULL: it is in no file, and has no other one. */
static void symbols_load(struct object_symbols *object, int proc_fd, const char *path)
{
    object->stripped = !file_has_symtab(object->file);
    if (object->stripped && path)
        debug_file_open(proc_fd, path, object->file, &object->debug);
    symbol_table_add(&object->symbols, elf_file_handle(object->file));
    if (object->debug)
        symbol_table_add(&object->symbols, elf_file_handle(object->debug));
    symbol_table_sort(&object->symbols);
    if (object->wants_lines && source_lines_open(elf_file_handle(object->file), &object->lines) &&
        object->debug)
        source_lines_open(elf_file_handle(object->debug), &object->lines);
}

/* Takes the file over, also when it fails. */
static int object_new(struct elf_file *file, bool wants_lines, struct object_symbols **ret)
{
    struct object_symbols *object = calloc(1, sizeof *object);
    if (!object) {
        elf_file_close(file);
        return -ENOMEM;
    }
    object->file = file;
    object->wants_lines = wants_lines;
    object->users = 1;
    *ret = object;
    return 0;
}

static struct object_symbols *object_find(const struct object_list *list,
                                          const struct file_identity *identity, bool wants_lines)
{
    for (struct object_symbols *object = list->first; object; object = object->next)
        if (file_identity_same(&object->identity, identity) && object->wants_lines == wants_lines)
            return object;
    return NULL;
}

int object_symbols_open(struct object_list *list, int proc_fd, const struct mapping *mapping,
                        bool wants_lines, struct object_symbols **ret)
{
    struct elf_file *file;
    struct file_identity identity;
    int error = elf_file_open_mapping(proc_fd, mapping, &file);
    if (error)
        return error;
    bool is_known = elf_file_identify(file, &identity) == 0;
    struct object_symbols *object = is_known ? object_find(list, &identity, wants_lines) : NULL;
    if (object) {
        elf_file_close(file);
        object->users++;
        *ret = object;
        return 0;
    }
    error = object_new(file, wants_lines, &object);
    if (error)
        return error;
    symbols_load(object, proc_fd, mapping->path);
    if (is_known) {
        object->identity = identity;
        object->in_list = true;
        object->next = list->first;
        list->first = object;
    }
    *ret = object;
    return 0;
}

int object_symbols_open_bytes(void *bytes, size_t size, bool wants_lines,
                              struct object_symbols **ret)
{
    AUTO_FREE void *owned = bytes;
    struct elf_file *file;
    struct object_symbols *object;
    int error = elf_file_open_bytes(bytes, size, &file);
    if (!error)
        error = object_new(file, wants_lines, &object);
    if (error)
        return error;
    object->bytes = TAKE_PTR(owned);
    symbols_load(object, -1, NULL);
    *ret = object;
    return 0;
}

void object_symbols_close(struct object_list *list, struct object_symbols *object)
{
    if (!object || --object->users)
        return;
    struct object_symbols **link = &list->first;
    while (object->in_list && *link != object)
        link = &(*link)->next;
    if (object->in_list)
        *link = object->next;
    object_free(object);
}
