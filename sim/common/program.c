/* SPDX-License-Identifier: BSD-2-Clause */
/* Can a program be simulated? The dynamic linker ignores a preload library without a word. */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "program.h"

static bool is_privileged(const char *path)
{
	struct stat st;

	return (!stat(path, &st) && (st.st_mode & (S_ISUID | S_ISGID))) ||
	       getxattr(path, "security.capability", NULL, 0) > 0;
}

/* Of our own word size: whatever else it is, it is not for us to judge. */
static bool is_static(int fd)
{
	Elf64_Ehdr file;
	Elf64_Phdr part;

	if (pread(fd, &file, sizeof(file), 0) != (ssize_t)sizeof(file) ||
	    memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64)
		return false;
	for (unsigned i = 0; i < file.e_phnum; i++) {
		off_t at = (off_t)(file.e_phoff + (Elf64_Off)i * file.e_phentsize);

		if (pread(fd, &part, sizeof(part), at) != (ssize_t)sizeof(part))
			return false;
		if (part.p_type == PT_INTERP)
			return false;
	}
	return true;
}

/* The interpreter that a script names; false for anything else. */
static bool read_interpreter(int fd, char interpreter[PATH_MAX])
{
	char line[256] = "";
	char *start = line + 2;

	if (pread(fd, line, sizeof(line) - 1, 0) < 3 || line[0] != '#' || line[1] != '!')
		return false;
	start += strspn(start, " \t");
	start[strcspn(start, " \t\n")] = '\0';
	memcpy(interpreter, start, strlen(start) + 1);
	return true;
}

const char *program_refusal(const char *path)
{
	char interpreter[PATH_MAX];
	bool script, fixed;
	int fd;

	if (is_privileged(path))
		return "is set-uid, set-gid or has file capabilities and cannot be simulated";
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	script = read_interpreter(fd, interpreter);
	fixed = is_static(fd);
	close(fd);
	if (fixed)
		return "is statically linked and cannot be simulated";
	if (script && is_privileged(interpreter))
		return "has a set-uid interpreter and cannot be simulated";
	return NULL;
}
