#include "output/model/memory_account.h"

#include "output/model/profile_state.h"

#include <stdlib.h>

enum { FIRST_CELLS = 64 };

void memory_init(struct memory_account *account)
{
    account->peak_line = NOTHING;
}

void memory_done(struct memory_account *account)
{
    timeline_done(&account->footprints);
    stack_table_done(&account->stacks);
    free(account->stack);
    free(account->shown);
}

void process_memory_free(struct process_memory *memory)
{
    if (!memory)
        return;
    live_blocks_done(&memory->blocks);
    free(memory->cells);
    free(memory);
}

/* ---- cells: a process's part of a tally ---- */

static struct memory_cell *cell_slot(struct memory_cell *cells, size_t slot_count, uint32_t tally)
{
    size_t slot = tally * 0x9E3779B9u >> 7 & (slot_count - 1);
    while (cells[slot].tally && cells[slot].tally != tally + 1)
        slot = (slot + 1) & (slot_count - 1);
    return &cells[slot];
}

static int cells_grow(struct process_memory *memory)
{
    if (2 * memory->cell_count < memory->cell_slots)
        return 0;
    size_t count = memory->cell_slots ? 2 * memory->cell_slots : FIRST_CELLS;
    struct memory_cell *cells = calloc(count, sizeof *cells);
    if (!cells)
        return -ENOMEM;
    for (size_t i = 0; i < memory->cell_slots; i++)
        if (memory->cells[i].tally)
            *cell_slot(cells, count, memory->cells[i].tally - 1) = memory->cells[i];
    free(memory->cells);
    memory->cells = cells;
    memory->cell_slots = count;
    return 0;
}

/* Before it changes: if the process was larger than ever since the last change, the cell was as it
 * still is. */
static double cell_at_peak(const struct process_memory *memory, const struct memory_cell *cell)
{
    return cell->peak == memory->peak ? cell->at_peak_bytes : cell->live_bytes;
}

static void cell_change(struct process_memory *memory, uint32_t tally, double bytes)
{
    struct memory_cell *cell = cell_slot(memory->cells, memory->cell_slots, tally);
    memory->cell_count += !cell->tally;
    cell->tally = tally + 1;
    cell->at_peak_bytes = cell_at_peak(memory, cell);
    cell->peak = memory->peak;
    cell->live_bytes += bytes;
}

/* ---- live blocks ---- */

static void footprint_change(struct memory_account *account, struct process_memory *memory,
                             double bytes, bool python)
{
    memory->live_bytes += bytes;
    memory->python_bytes += python ? bytes : 0;
    account->live_bytes += bytes;
    account->python_bytes += python ? bytes : 0;
}

static void peaks_raise(struct memory_account *account, struct process_memory *memory,
                        uint32_t line)
{
    if (memory->live_bytes > memory->peak_bytes) {
        memory->peak_bytes = memory->live_bytes;
        memory->peak++;
    }
    if (account->live_bytes > account->peak_bytes) {
        account->peak_bytes = account->live_bytes;
        account->peak_python_bytes = account->python_bytes;
        account->peak_allocated_bytes = account->allocated_bytes;
        account->peak_line = line;
    }
}

static struct memory_tally *memory_at(const struct profile *profile, uint32_t number)
{
    return profile->places.tallies[number].memory;
}

static void part_drop(struct profile *profile, struct process_memory *memory, uint64_t time_ns,
                      const struct block_part *part, double weight, bool whole)
{
    const uint32_t tallies[] = { part->line, part->function };
    for (size_t i = 0; i < 2; i++) {
        if (tallies[i] == NOTHING)
            continue;
        memory_tally_shrink(memory_at(profile, tallies[i]), part->born_ns, time_ns, weight, whole);
        cell_change(memory, tallies[i], -weight);
    }
    footprint_change(&profile->memory, memory, -weight, part->python);
    profile->memory.part_count -= whole;
}

static int footprints_add(struct profile *profile, const struct process_memory *memory,
                          uint64_t time_ns, const struct block_part *part)
{
    const uint32_t tallies[] = { part->line, part->function };
    int error = timeline_add(&profile->memory.footprints, time_ns, profile->memory.live_bytes);
    for (size_t i = 0; i < 2 && !error; i++)
        if (tallies[i] != NOTHING)
            error = timeline_add(&memory_at(profile, tallies[i])->footprints, time_ns,
                                 memory->live_bytes);
    return error;
}

int memory_follow(struct profile *profile, struct process_memory *memory, uint64_t block,
                  const struct block_part *part)
{
    const uint32_t tallies[] = { part->line, part->function };
    struct memory_account *account = &profile->memory;
    if (account->part_count == BLOCKS_MAX) {
        account->unfollowed_bytes += part->weight_bytes;
        return 0;
    }
    if (live_blocks_push(&memory->blocks, block, part))
        return -ENOMEM;
    account->part_count++;
    if (part->stack != STACK_ROOT)
        account->stacks.nodes[part->stack].live += part->weight_bytes;
    footprint_change(account, memory, part->weight_bytes, part->python);
    for (size_t i = 0; i < 2; i++) {
        if (tallies[i] == NOTHING)
            continue;
        if (cells_grow(memory))
            return -ENOMEM;
        memory_tally_grow(memory_at(profile, tallies[i]), part->born_ns, part->weight_bytes);
        cell_change(memory, tallies[i], part->weight_bytes);
    }
    peaks_raise(account, memory, part->line);
    return footprints_add(profile, memory, part->born_ns, part);
}

/* A part of a block goes, or `weight` of it. */
static int part_leave(struct profile *profile, struct process_memory *memory, uint64_t time_ns,
                      const struct block_part *part, double weight, bool whole)
{
    const uint32_t tallies[] = { part->line, part->function };
    for (size_t i = 0; i < 2; i++)
        if (tallies[i] != NOTHING)
            memory_at(profile, tallies[i])->freed_bytes += weight;
    profile->memory.freed_bytes += weight;
    if (part->stack != STACK_ROOT)
        profile->memory.stacks.nodes[part->stack].live -= weight;
    part_drop(profile, memory, time_ns, part, weight, whole);
    return footprints_add(profile, memory, time_ns, part);
}

/* From the newest part on. */
int memory_shrink(struct profile *profile, struct process_memory *memory, uint64_t time_ns,
                  uint64_t block, uint64_t left)
{
    uint64_t size = live_blocks_size(&memory->blocks, block);
    uint64_t excess = size > left ? size - left : 0;
    int error = 0;
    struct block_part part, *top;
    while ((top = live_blocks_top(&memory->blocks, block)) && (excess || !left) && !error) {
        if (top->size_bytes <= excess) {
            live_blocks_pop(&memory->blocks, block, &part);
            excess -= part.size_bytes;
            error = part_leave(profile, memory, time_ns, &part, part.weight_bytes, true);
            continue;
        }
        part = *top;
        double weight = part.weight_bytes * ((double)excess / (double)part.size_bytes);
        top->weight_bytes -= weight;
        top->size_bytes -= excess;
        return part_leave(profile, memory, time_ns, &part, weight, false);
    }
    return error;
}

/* Nobody freed it: to those who look for what is left it is no less there than before. */
static void part_outlast(struct profile *profile, const struct block_part *part)
{
    const uint32_t tallies[] = { part->line, part->function };
    for (size_t i = 0; i < 2; i++)
        if (tallies[i] != NOTHING)
            memory_at(profile, tallies[i])->left_bytes += part->weight_bytes;
    profile->memory.left_bytes += part->weight_bytes;
}

int memory_empty(struct profile *profile, struct process_memory *memory, uint64_t time_ns)
{
    struct block_part part;
    uint64_t block;
    size_t at = 0;
    while (live_blocks_any(&memory->blocks, &at, &block) &&
           live_blocks_pop(&memory->blocks, block, &part)) {
        part_outlast(profile, &part);
        part_drop(profile, memory, time_ns, &part, part.weight_bytes, true);
    }
    return timeline_add(&profile->memory.footprints, time_ns, profile->memory.live_bytes);
}

int memory_end(struct profile *profile, uint32_t process)
{
    struct process_memory *memory = profile->processes[process].memory;
    if (!memory)
        return 0;
    int error = memory_empty(profile, memory, profile->memory.last_ns);
    for (size_t i = 0; i < memory->cell_slots; i++)
        if (memory->cells[i].tally)
            memory_at(profile, memory->cells[i].tally - 1)->ended_bytes +=
                cell_at_peak(memory, &memory->cells[i]);
    live_blocks_done(&memory->blocks);
    free(memory->cells);
    memory->cells = NULL;
    memory->cell_count = memory->cell_slots = 0;
    return error;
}

void memory_settle(struct profile *profile)
{
    for (size_t i = 0; i < profile->places.tally_index.count; i++) {
        struct memory_tally *tally = memory_at(profile, (uint32_t)i);
        if (tally)
            tally->at_peak_bytes = tally->ended_bytes;
    }
    for (size_t p = 0; p < profile->process_index.count; p++) {
        const struct process_memory *memory = profile->processes[p].memory;
        for (size_t i = 0; memory && i < memory->cell_slots; i++)
            if (memory->cells[i].tally)
                memory_at(profile, memory->cells[i].tally - 1)->at_peak_bytes +=
                    cell_at_peak(memory, &memory->cells[i]);
    }
}
