#include "output/export/text_table.h"

#include "output/model/array.h"

int64_t text_table_add(struct text_table *table, const char *text)
{
    size_t count = table->index.count;
    int64_t number = -ENOMEM;
    if (text && !ARRAY_GROW(table->texts, count, table->room))
        number = key_index_add(&table->index, (struct key){ { (uintptr_t)text } });
    if (number < 0) {
        table->is_short = true;
        return 0;
    }
    table->texts[number] = text;
    return number;
}

void text_table_done(struct text_table *table)
{
    key_index_done(&table->index);
    free(table->texts);
    *table = (struct text_table){ 0 };
}
