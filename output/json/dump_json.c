#include "output/json/dump_json.h"

#include "sampler/base/cleanup.h"
#include "sampler/base/utf8.h"

#include <yyjson.h>

DEFINE_CLEANUP(yyjson_mut_doc *, yyjson_mut_doc_free)

static const char *const kind_names[] = {
    [FRAME_PYTHON] = "py",
    [FRAME_NATIVE] = "native",
    [FRAME_GC] = "gc",
};

static void text_add(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, const char *text)
{
    AUTO_FREE char *repaired = text && !utf8_is_valid(text) ? utf8_repair(text) : NULL;
    if (repaired)
        yyjson_mut_obj_add_strcpy(doc, object, key, repaired);
    else if (text)
        yyjson_mut_obj_add_str(doc, object, key, text);
    else
        yyjson_mut_obj_add_null(doc, object, key);
}

static void frame_add(yyjson_mut_doc *doc, yyjson_mut_val *frames, const struct frame_event *frame)
{
    yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, frames);
    yyjson_mut_obj_add_str(doc, object, "kind", kind_names[frame->kind]);
    text_add(doc, object, "name", frame->name);
    text_add(doc, object, "file", frame->file);
    if (frame->line)
        yyjson_mut_obj_add_int(doc, object, "line", frame->line);
    else
        yyjson_mut_obj_add_null(doc, object, "line");
    if (frame->column)
        yyjson_mut_obj_add_int(doc, object, "column", frame->column);
    if (frame->kind != FRAME_NATIVE)
        return;
    text_add(doc, object, "module", frame->module);
    yyjson_mut_obj_add_uint(doc, object, "ip", frame->ip);
    yyjson_mut_obj_add_uint(doc, object, "offset", frame->offset);
}

static void thread_add(yyjson_mut_doc *doc, yyjson_mut_val *threads,
                       const struct thread_event *thread)
{
    yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, threads);
    yyjson_mut_obj_add_int(doc, object, "tid", thread->tid);
    yyjson_mut_obj_add_uint(doc, object, "ident", thread->ident);
    text_add(doc, object, "name", thread->name);
    yyjson_mut_obj_add_int(doc, object, "interpreter", thread->interpreter);
    yyjson_mut_obj_add_str(doc, object, "state", thread_state_name(thread->state));
    yyjson_mut_obj_add_bool(doc, object, "holds_gil", thread->holds_gil);
    yyjson_mut_val *frames = yyjson_mut_obj_add_arr(doc, object, "frames");
    for (size_t i = 0; i < thread->frame_count; i++)
        frame_add(doc, frames, &thread->frames[i]);
    if (thread->error)
        yyjson_mut_obj_add_str(doc, object, "error", thread->error);
}

char *dump_json_write(const struct dump_event *dump)
{
    CLEANUP(yyjson_mut_doc_freep) yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    if (!doc)
        return NULL;
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_int(doc, root, "pid", dump->pid);
    yyjson_mut_obj_add_str(doc, root, "python", dump->python);
    yyjson_mut_val *threads = yyjson_mut_obj_add_arr(doc, root, "threads");
    for (size_t i = 0; i < dump->thread_count; i++)
        thread_add(doc, threads, &dump->threads[i]);
    const yyjson_write_flag flags = YYJSON_WRITE_PRETTY_TWO_SPACES | YYJSON_WRITE_NEWLINE_AT_END;
    return yyjson_mut_write(doc, flags, NULL);
}
