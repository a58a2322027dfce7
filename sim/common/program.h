/* SPDX-License-Identifier: BSD-2-Clause */
/* Can a program be simulated? The dynamic linker ignores a preload library without a word. */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

/* NULL if the file's program would load a preload library, else why it would not. */
const char *program_refusal(const char *path);

#endif
