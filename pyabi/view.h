/*
 * One thread's memory as seen at one moment: the pieces (chunks, frames, code heads) that the last
 * walks used are the prediction for the next, fetched together in one vector; what was not
 * predicted is fetched when asked for. With two copies of each piece a walk can be proven not to
 * have moved. Steady state allocates nothing.
 */
#pragma once

#include "sampler/base/remote.h"

#include <stdbool.h>

struct view;

int view_new(struct view **ret);
void view_free(struct view *view);

/*
 * The order in which pieces are fetched: what says where the stack begins comes before the stack.
 * Of a running thread it is asked again last of all, the stack at each look, everything else once.
 */
enum piece_rank { PIECE_THREAD, PIECE_HEAD, PIECE_CHUNK, PIECE_FRAME, PIECE_CODE, PIECE_RANKS };

/*
 * How often the bytes of a running thread are looked at before a stack made of them is believed.
 * Frames in chunks are copied in one go; where one is an object of its own, a look takes
 * microseconds, and a program that moves to and fro at just that pace can make three looks agree.
 */
enum { VIEW_LOOKS = 3, VIEW_LOOKS_SCATTERED = 5 };

/*
 * Starts a moment: forgets pieces that were of no use for a while and reads all others, `looks`
 * times (1, VIEW_LOOKS or VIEW_LOOKS_SCATTERED), in one vector. What cannot be read any more is
 * dropped. 0, -ESRCH, -EPERM, -ENOMEM.
 */
int view_refill(struct view *view, struct remote *memory, unsigned looks);

/* The same with pieces of somebody else's in front: one call instead of two. -EFAULT when those
 * could not be read; after any other error, -ESRCH excepted, they may have been or not. */
int view_refill_with(struct view *view, struct remote *memory, unsigned looks,
                     const struct remote_piece *others, size_t other_count);

/*
 * The bytes at an address: from the pieces, else read now and predicted from then on. The pointer
 * is good until the next view_fetch. NULL and *ret_error when unreadable.
 */
const void *view_fetch(struct view *view, struct remote *memory, enum piece_rank rank,
                       remote_addr address, size_t size, int *ret_error);

/* Only from the pieces; NULL when it was not predicted. */
const void *view_find(struct view *view, remote_addr address, size_t size);

/* The same bytes at a later look: from 1 on, of the stack; at the last one, of its head. NULL when
 * there was none. */
const void *view_find_again(struct view *view, unsigned look, remote_addr address, size_t size);

/* Is there a frame that lies in no chunk? That of a generator does. */
bool view_is_scattered(const struct view *view);

/* How many there are at this moment. */
unsigned view_looks(const struct view *view);

/* Takes the later looks at everything now, because something was not predicted. */
int view_look_again(struct view *view, struct remote *memory);

/* Chunks changed between the first look and the last: who writes there ran meanwhile. */
bool view_has_moved(const struct view *view);

/* Something was fetched after the last refill (so that it was looked at once only). */
bool view_has_grown(const struct view *view);
