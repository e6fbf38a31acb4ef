/*
 * Debian 13's libdw.a and libelf.a want these six from a part of elfutils 0.192 that the package
 * leaves out. A tree begins with its root; the lock behind that is nobody's here, since one thread
 * alone uses elfutils.
 */
#define _GNU_SOURCE /* tdestroy */
#include <search.h>
#include <stddef.h>

struct search_tree {
    void *root;
};

typedef int compare(const void *, const void *);

void eu_search_tree_init(struct search_tree *tree);
void eu_search_tree_fini(struct search_tree *tree, void (*node_free)(void *));
void *eu_tsearch(const void *key, struct search_tree *tree, compare *order);
void *eu_tfind(const void *key, struct search_tree *tree, compare *order);
void *eu_tdelete(const void *key, struct search_tree *tree, compare *order);
void eu_tdestroy(struct search_tree *tree, void (*node_free)(void *));

void eu_search_tree_init(struct search_tree *tree)
{
    tree->root = NULL;
}

void eu_search_tree_fini(struct search_tree *tree, void (*node_free)(void *))
{
    eu_tdestroy(tree, node_free);
}

void *eu_tsearch(const void *key, struct search_tree *tree, compare *order)
{
    return tsearch(key, &tree->root, order);
}

void *eu_tfind(const void *key, struct search_tree *tree, compare *order)
{
    return tfind(key, &tree->root, order);
}

void *eu_tdelete(const void *key, struct search_tree *tree, compare *order)
{
    return tdelete(key, &tree->root, order);
}

void eu_tdestroy(struct search_tree *tree, void (*node_free)(void *))
{
    tdestroy(tree->root, node_free);
    tree->root = NULL;
}
