/* SPDX-License-Identifier: BSD-2-Clause */
/* The library keeps its diagnosis to itself, so the command has a copy of the object, not of the
 * text. */
#include "../core/diagnose.c"
#include "../core/pci.c"
