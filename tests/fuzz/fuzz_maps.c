/* Any text for /proc/PID/maps: what comes out is sorted, whole, and found again by its addresses.
 */
#include "sampler/base/cleanup.h"
#include "symbols/mapped_objects.h"
#include "symbols/maps.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void check_objects(const struct maps *maps)
{
    AUTO_FREE struct mapped_object *objects = NULL;
    long count = mapped_objects_list(maps, maps->count ? maps->list[0].path : "", &objects);
    for (long i = 0; i < count; i++) {
        must(objects[i].mappings >= maps->list && objects[i].count > 0);
        must(objects[i].mappings + objects[i].count <= maps->list + maps->count);
        must(i == 0 || objects[i - 1].rank <= objects[i].rank);
    }
    version_of_maps(maps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(maps_done) struct maps maps = { 0 };
    if (maps_parse((const char *)data, size, &maps) < 0)
        return 0;
    for (size_t i = 0; i < maps.count; i++) {
        const struct mapping *mapping = &maps.list[i];
        must(mapping->start < mapping->end && (i == 0 || mapping[-1].end <= mapping->start));
        must(strlen(mapping->path) <= size);
        must(maps_find(&maps, mapping->start) == mapping);
        must(maps_find(&maps, mapping->end - 1) == mapping);
    }
    check_objects(&maps);
    return 0;
}
