/* SPDX-License-Identifier: BSD-2-Clause */
/* The private directory with the file tree in which the program finds its devices. */
#ifndef SIM_TREE_H
#define SIM_TREE_H

#include <stdbool.h>

struct options;

bool tree_make(const struct options *options);
void tree_remove(void);
const char *tree_dir(void);

#endif
