/*
 * A remote that keeps the pages it has read: many small reads of neighbouring objects become few
 * calls. True for one moment only, so whoever knows when the moment ends (a thread resumes) forgets
 * the pages.
 */
#pragma once

#include "sampler/base/remote.h"

struct page_cache;

int page_cache_new(struct remote *under, struct page_cache **ret);
void page_cache_free(struct page_cache *cache);

/* Borrowed; reads through the cache. */
struct remote *page_cache_remote(struct page_cache *cache);

/* What it stands over, for reads that must see the memory of this moment. */
struct remote *page_cache_source(struct page_cache *cache);

void page_cache_forget(struct page_cache *cache);
