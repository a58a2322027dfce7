/* SPDX-License-Identifier: BSD-2-Clause */
/* How commands end. */
#ifndef SIM_OPCODE_H
#define SIM_OPCODE_H

enum command_status {
	STATUS_OK = 0x0,
	STATUS_BAD_OPCODE = 0x2,
	STATUS_BAD_PARAM = 0x3,
	STATUS_BAD_STATE = 0x4,
	STATUS_BAD_RESOURCE = 0x5,
	STATUS_NO_RESOURCES = 0xf,
	STATUS_BAD_INPUT_SIZE = 0x50,
	STATUS_BAD_OUTPUT_SIZE = 0x51,
};

enum opcode {
	OPCODE_MANAGE_PAGES = 0x108,
};

#endif
