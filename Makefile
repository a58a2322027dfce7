# SPDX-License-Identifier: BSD-2-Clause
#
#   make              libraries in build/lib, programs in build/bin (installs nothing)
#   make demo         installs what is missing, builds, runs examples/demo.sh
#   make test         installs what is missing, builds every variant, runs all tests
#   make lint         format, clang-tidy, cppcheck, shellcheck
#   make bench        measures against hand-written glue: build/bench.json
#   make soak         SECONDS=1800 SEED=N: random operations on every loop
#   make load         a million events on one device, 256 devices: entries, pages, memory
#   make coverage     the tests with gcov: a line per file, and each line that they do not reach
#   make install | uninstall      prefix=/usr/local libdir=… DESTDIR=…
#   make clean
#
# WITH_UV=1 insists on an adapter (WITH_LIBEVENT, WITH_LIBEV likewise), WITH_UV=0 leaves it out;
# without either it is built when its loop library is found. WERROR=1 makes warnings errors, V=1
# shows the commands. One test: make test TESTS=test_core VARIANTS="plain asan".

VERSION := 0.1.0
SOMAJOR := 0

CC         := $(if $(filter default,$(origin CC)),gcc,$(CC))
PKG_CONFIG ?= pkg-config
OBJCOPY    ?= objcopy
CFLAGS     ?= -O2 -g
BUILD      ?= build
# plain; asan, tsan and cov are the same sources again, in another BUILD, linked statically
VARIANT    ?= plain
JOBS       ?= 2

prefix       ?= /usr/local
bindir       ?= $(prefix)/bin
libdir       ?= $(prefix)/lib
includedir   ?= $(prefix)/include
mandir       ?= $(prefix)/share/man
pkgconfigdir ?= $(libdir)/pkgconfig

BIN := $(BUILD)/bin
LIB := $(BUILD)/lib
OBJ := $(BUILD)/obj
comma := ,
obj   = $(patsubst %.c,$(OBJ)/%.o,$(1))

Q   := $(if $(V),,@)
say  = $(if $(V),,@printf '  %-5s %s\n' $(1) $(2))

.DELETE_ON_ERROR:
.SECONDEXPANSION:
.SUFFIXES:
.PHONY: all programs FORCE adapters demo test lint bench soak load coverage install uninstall clean deps
all:

# ---- Adapters ----------------------------------------------------------------------------------
# A line each; everything else follows from its name: include/mlx5vfio/NAME.h, libmlx5vfio-NAME,
# pkgconfig/mlx5vfio-NAME.pc.in, SOURCES/libmlx5vfio-NAME.map.

has_header = $(shell $(CC) $(CPPFLAGS) $(2) -E -include $(1) -x c /dev/null >/dev/null 2>&1 && echo 1)
define adapter
ALL_ADAPTERS += $(1)
$(1)_dir    := $(3)
$(1)_src    := $$(wildcard $(3)/*.c)
$(1)_cflags := $$(shell $(PKG_CONFIG) --cflags $(5) 2>/dev/null)
$(1)_libs   := $$(or $$(shell $(PKG_CONFIG) --libs $(5) 2>/dev/null),$(6))
$(1)_absent := $$(if $$(filter 0,$$(WITH_$(strip $(2)))),WITH_$(strip $(2))=0,$$(if $$($(1)_src),$$(if \
                 $$(call has_header,$(4),$$($(1)_cflags)),,no $(4)),no sources))
ADAPTERS    += $$(if $$($(1)_absent),,$(1))
LEFT_OUT    += $$(if $$($(1)_absent),$(1): $$($(1)_absent);)
INSISTED    += $$(if $$(and $$($(1)_absent),$$(filter 1,$$(WITH_$(strip $(2))))),$(1))
endef
#                      name     WITH_    sources           probe          .pc           without .pc
$(eval $(call adapter,uv,      UV,      adapters/libuv,   uv.h,          libuv,        -luv))
$(eval $(call adapter,libevent,LIBEVENT,adapters/libevent,event2/event.h,libevent_core,-levent_core))
$(eval $(call adapter,libev,   LIBEV,   adapters/libev,   ev.h,          libev,        -lev))

adapters:
	$(if $(strip $(LEFT_OUT)),@echo 'adapters left out: $(strip $(LEFT_OUT))')
	$(if $(strip $(INSISTED)),@echo 'cannot be built: $(strip $(INSISTED))' >&2; exit 1)

# ---- Flags -------------------------------------------------------------------------------------

san_asan := -O1 -DMLX5VFIO_DEBUG -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
san_tsan := -O1 -DMLX5VFIO_DEBUG -fno-omit-frame-pointer -fsanitize=thread
san_cov  := -O0 --coverage
ifneq ($(findstring clang,$(shell $(CC) --version 2>/dev/null)),clang)
# a shared runtime would have to come before the preloaded simulator
static_asan := -static-libasan -static-libubsan
static_tsan := -static-libtsan
endif

WARN  := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
FLAGS  = -std=c11 -D_GNU_SOURCE -Iinclude -fPIC -pthread $(WARN) $(CFLAGS) $(san_$(VARIANT)) \
         $(foreach a,$(ADAPTERS),$($(a)_cflags)) $(CPPFLAGS)
# the simulator stands in for libc functions and bears a NULL where libc's headers forbid it
BEAR_NULL := -fno-delete-null-pointer-checks -Wno-nonnull-compare -Wno-pointer-bool-conversion \
             -Wno-unknown-warning-option
# by the first directory of the source
FLAGS_core     := -fvisibility=hidden -fno-plt -DMLX5VFIO_VERSION=\"$(VERSION)\"
FLAGS_adapters := -fvisibility=hidden -fno-plt
FLAGS_sim       = -Isim -DMLX5VFIO_VERSION=\"$(VERSION)\" -DSIM_LIBDIR=\"$(libdir)/mlx5vfio\" \
                  -U_FORTIFY_SOURCE $(BEAR_NULL)
FLAGS_tests    := -Isim -Itests -DMLX5VFIO_VERSION=\"$(VERSION)\"
FLAGS_bench    := -Isim
FLAGS_examples := -Isim
compile         = $(CC) $(FLAGS) $(FLAGS_$(firstword $(subst /, ,$(1))))
link            = $(CC) $(CFLAGS) $(san_$(VARIANT)) -pthread -Wl,--as-needed $(LDFLAGS)
link_program    = $(link) $(static_$(VARIANT)) -Wl,-rpath,'$$ORIGIN/../lib'

MLX5_LIBS  := -lmlx5 -libverbs
CHECK_LIBS := $(or $(shell $(PKG_CONFIG) --libs check 2>/dev/null),-lcheck)

# Rewritten only when it changes: other flags build everything again.
$(BUILD)/flags: export NOW = $(call compile,core/) $(LDFLAGS)
$(BUILD)/flags-sim: export NOW = $(call compile,sim/) $(LDFLAGS)
$(BUILD)/flags $(BUILD)/flags-sim: FORCE
	@mkdir -p $(@D) $(BIN) $(LIB) $(BUILD)/tests
	@$(CC) $(CPPFLAGS) -E -include infiniband/mlx5dv.h -x c /dev/null >/dev/null 2>&1 || { \
	  echo "$(CC) or libmlx5's header infiniband/mlx5dv.h is missing: tools/install-deps.sh build" \
	  "(as root) installs them" >&2; exit 1; }
	@printf '%s\n' "$$NOW" | cmp -s - $@ || printf '%s\n' "$$NOW" >$@

$(OBJ)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(call compile,$<) $(if $(WERROR),-Werror) -MMD -MP -c -o $@ $<

# ---- Libraries ---------------------------------------------------------------------------------
# Plain programs link the .so, variants the .a. Neither shows a name that is not MLX5VFIO_API: a .a is
# one object whose hidden names are local.

EXT := $(if $(filter plain,$(VARIANT)),so,a)

# $(call library,NAME,sources,version script,libraries)
define library
$(LIB)/lib$(1).so.$(VERSION): $$(call obj,$(2)) $(3) $$(filter $(LIB)/%,$(4))
	$$(call say,LD,$$@)
	$$(Q)$$(link) -shared -Wl,-soname,lib$(1).so.$(SOMAJOR) -Wl,--version-script=$(3) -Wl,-z,defs \
	  -o $$@ $$(call obj,$(2)) $(4)
$(LIB)/lib$(1).so: $(LIB)/lib$(1).so.$(VERSION)
	$$(Q)ln -sf lib$(1).so.$(VERSION) $(LIB)/lib$(1).so.$(SOMAJOR) && ln -sf lib$(1).so.$(SOMAJOR) $$@
$(LIB)/lib$(1).a: $$(call obj,$(2))
	$$(call say,AR,$$@)
	$$(Q)$$(CC) -r -nostdlib -o $(LIB)/$(1).o $$^
	$$(Q)$$(OBJCOPY) --localize-hidden $(LIB)/$(1).o
	$$(Q)rm -f $$@ && $$(AR) rcs $$@ $(LIB)/$(1).o && rm $(LIB)/$(1).o
LIBRARIES += $(1)
OBJECTS   += $$(call obj,$(2))
endef

CORE_SRC := $(wildcard core/*.c)
$(if $(CORE_SRC),$(eval $(call library,mlx5vfio,$(CORE_SRC),core/libmlx5vfio.map,$(MLX5_LIBS))))
$(foreach a,$(ADAPTERS),$(eval $(call \
  library,mlx5vfio-$(a),$($(a)_src),$($(a)_dir)/libmlx5vfio-$(a).map,$(LIB)/libmlx5vfio.so $($(a)_libs))))

# ---- Simulator ---------------------------------------------------------------------------------

SIM_COMMON := $(wildcard sim/common/*.c)
SIM_SRC    := $(wildcard sim/lib/*.c)
SIM_MAP    := $(wildcard sim/lib/libmlx5vfio-sim.map)
SIM_LIB    := $(if $(SIM_SRC),$(LIB)/libmlx5vfio-sim.so)
SIM_BIN    := $(patsubst sim/%.c,$(BIN)/%,$(wildcard sim/*.c))
SIM_OBJ    := $(call obj,$(SIM_SRC) $(SIM_COMMON) $(wildcard sim/*.c))
OBJECTS    += $(SIM_OBJ)

$(SIM_OBJ): $(BUILD)/flags-sim
$(LIB)/libmlx5vfio-sim.so: $(call obj,$(SIM_SRC) $(SIM_COMMON)) $(SIM_MAP)
	$(call say,LD,$@)
	$(Q)$(link) -shared $(addprefix -Wl$(comma)--version-script=,$(SIM_MAP)) -Wl,-z,defs \
	  -o $@ $(filter %.o,$^) -ldl -lpthread
$(SIM_BIN): $(BIN)/%: $(OBJ)/sim/%.o $(call obj,$(SIM_COMMON))
	$(call say,LD,$@)
	$(Q)$(link_program) -o $@ $^ -ldl -lpthread

# ---- Programs ----------------------------------------------------------------------------------
# A program is on the loop that its name has as a word (test_libev_x.c, libevent-echo.c), or on uv; byo
# brings its own.

loop_of  = $(or $(firstword $(filter $(ALL_ADAPTERS) byo,$(subst _, ,$(subst -, ,$(basename $(notdir $(1))))))),uv)
built_in = $(foreach s,$(1),$(if $(filter $(ADAPTERS) byo,$(call loop_of,$(s))),$(s)))
libs_of  = $(patsubst %,$(LIB)/libmlx5vfio-%.$(EXT),$(filter-out byo,$(call loop_of,$(1)))) $(LIB)/libmlx5vfio.$(EXT)

TOOL_SRC    := $(if $(filter uv,$(ADAPTERS)),$(wildcard tools/*.c))
TOOL        := $(if $(TOOL_SRC),$(BIN)/mlx5vfio)
SUPPORT_SRC := $(wildcard tests/support/*.c tests/conformance/*.c)
TEST_SRC    := $(call built_in,$(wildcard tests/test_*.c tests/prog_*.c))
OTHER_SRC   := $(call built_in,$(wildcard examples/*.c bench/*.c))
TEST_BIN    := $(TEST_SRC:%.c=$(BUILD)/%)
OTHER_BIN   := $(OTHER_SRC:%.c=$(BUILD)/%)
OBJECTS     += $(call obj,$(TOOL_SRC) $(SUPPORT_SRC) $(TEST_SRC) $(OTHER_SRC))

$(BIN)/mlx5vfio: $(call obj,$(TOOL_SRC)) $$(call libs_of,uv)
	$(call say,LD,$@)
	$(Q)$(link_program) -o $@ $^ $(uv_libs) $(MLX5_LIBS)
$(BUILD)/tests/support.a: $(call obj,$(SUPPORT_SRC))
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(TEST_BIN): $(BUILD)/%: $(OBJ)/%.o $(BUILD)/tests/support.a $$(call libs_of,$$*)
	$(call say,LD,$@)
	$(Q)$(link_program) -o $@ $^ $($(call loop_of,$*)_libs) $(CHECK_LIBS) $(MLX5_LIBS) -ldl
$(OTHER_BIN): $(BUILD)/%: $(OBJ)/%.o $$(call libs_of,$$*)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(link_program) -o $@ $^ $($(call loop_of,$*)_libs) $(MLX5_LIBS) -ldl

$(OBJECTS): $(BUILD)/flags
-include $(OBJECTS:.o=.d)

# ---- What people type --------------------------------------------------------------------------

all: adapters $(foreach l,$(LIBRARIES),$(LIB)/lib$(l).so $(LIB)/lib$(l).a) $(SIM_LIB) $(SIM_BIN) $(TOOL)
ifeq ($(VARIANT),plain)
programs: all $(TEST_BIN) $(OTHER_BIN)
else
programs: $(TEST_BIN)
endif

# Recursion, because probes must run again after the installation. In parallel unless -j says else.
SUB      = $(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(JOBS))
VARIANTS ?= plain asan tsan valgrind scripts
TESTS    ?=

demo:
	@tools/install-deps.sh build
	@+$(SUB) all $(if $(wildcard examples/*.c),examples)
	@if [ -x examples/demo.sh ]; then examples/demo.sh; else echo 'examples/demo.sh is not there'; fi

.PHONY: examples
examples: $(filter $(BUILD)/examples/%,$(OTHER_BIN))
	@:

test:
	@tools/install-deps.sh build test lint
	@+$(SUB) programs WERROR=1
	@+for v in $(filter asan tsan cov,$(VARIANTS)); do \
	  $(SUB) programs WERROR=1 BUILD=$(BUILD)/$$v VARIANT=$$v || exit 1; done
	@BUILD='$(BUILD)' CC='$(CC)' VARIANTS='$(VARIANTS)' tests/run $(TESTS)

lint:
	@tools/install-deps.sh build test lint
	@LINT_ALL=1 BUILD='$(BUILD)' tests/lint.sh

coverage:
	@rm -rf $(BUILD)/cov
	@+$(MAKE) --no-print-directory test VARIANTS=cov TESTS='$(TESTS)'
	@BUILD='$(BUILD)' TESTS='$(TESTS)' tools/coverage.sh

bench soak load: script = $(if $(filter bench,$@),bench/run,tests/$@)
bench soak load:
	@tools/install-deps.sh build test
	@+$(SUB) programs
	@$(script)

# for editors, clang-tidy and cppcheck
ALL_SRC := $(CORE_SRC) $(foreach a,$(ADAPTERS),$($(a)_src)) $(SIM_SRC) $(SIM_COMMON) \
           $(wildcard sim/*.c) $(TOOL_SRC) $(SUPPORT_SRC) $(TEST_SRC) $(OTHER_SRC)
json     = {"directory":"$(CURDIR)","file":"$(1)","command":"$(subst ",\",$(subst \,\\,$(call compile,$(1)))) -c $(1)"}
.PHONY: compile_commands
compile_commands:
	@mkdir -p $(BUILD)
	$(file >$(BUILD)/compile_commands.json,[$(subst } {,}$(comma) {,$(foreach s,$(ALL_SRC),$(call json,$(s))))])

# ---- Install -----------------------------------------------------------------------------------
# KIND:DESTINATION:SOURCE, the kind a file mode or "link"

PC      := $(patsubst %,%.pc,$(LIBRARIES))
HEADERS := $(if $(CORE_SRC),core eq) $(ADAPTERS)
FILES    = $(foreach p,$(TOOL) $(SIM_BIN),755:$(bindir)/$(notdir $(p)):$(p)) \
  $(foreach l,$(LIBRARIES),755:$(libdir)/lib$(l).so.$(VERSION):$(LIB)/lib$(l).so.$(VERSION) \
    link:$(libdir)/lib$(l).so.$(SOMAJOR):lib$(l).so.$(VERSION) \
    link:$(libdir)/lib$(l).so:lib$(l).so.$(SOMAJOR) 644:$(libdir)/lib$(l).a:$(LIB)/lib$(l).a) \
  $(if $(SIM_LIB),755:$(libdir)/mlx5vfio/$(notdir $(SIM_LIB)):$(SIM_LIB)) \
  $(foreach h,$(HEADERS),644:$(includedir)/mlx5vfio/$(h).h:include/mlx5vfio/$(h).h) \
  644:$(includedir)/mlx5vfio_sim.h:sim/mlx5vfio_sim.h \
  $(foreach p,$(PC),644:$(pkgconfigdir)/$(p):$(BUILD)/pkgconfig/$(p)) \
  $(foreach m,$(wildcard man/*.[1-9]),644:$(mandir)/man$(patsubst .%,%,$(suffix $(m)))/$(notdir $(m)):$(m))

# the dynamic linker's cache, when it is the running system's that was changed
ldconfig = @[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || PATH="$$PATH:/sbin" ldconfig || true

under_prefix = $(patsubst $(prefix)/%,$${prefix}/%,$(1))
$(BUILD)/pkgconfig/%.pc: pkgconfig/%.pc.in FORCE
	@mkdir -p $(@D)
	@sed -e 's|@VERSION@|$(VERSION)|' -e 's|@prefix@|$(prefix)|' \
	  -e 's|@libdir@|$(call under_prefix,$(libdir))|' \
	  -e 's|@includedir@|$(call under_prefix,$(includedir))|' $< >$@

install: all $(addprefix $(BUILD)/pkgconfig/,$(PC))
	@set -e; for f in $(FILES); do \
	  kind=$${f%%:*}; f=$${f#*:}; to="$(DESTDIR)$${f%%:*}"; from=$${f#*:}; echo "  $$to"; \
	  mkdir -p "$${to%/*}"; \
	  if [ $$kind = link ]; then ln -sf "$$from" "$$to"; else install -m $$kind "$$from" "$$to"; fi; done
	$(ldconfig)

# Everything that an install may have put there, whatever could be built today.
EVERY      := mlx5vfio $(addprefix mlx5vfio-,$(ALL_ADAPTERS))
INSTALLED   = $(addprefix $(bindir)/,mlx5vfio mlx5vfio-sim mlx5vfio-simctl) \
  $(foreach l,$(EVERY),$(addprefix $(libdir)/lib$(l),.a .so .so.$(SOMAJOR) .so.$(VERSION))) \
  $(libdir)/mlx5vfio/libmlx5vfio-sim.so $(EVERY:%=$(pkgconfigdir)/%.pc) \
  $(addprefix $(includedir)/,mlx5vfio_sim.h $(patsubst %,mlx5vfio/%.h,core eq $(ALL_ADAPTERS))) \
  $(foreach m,$(wildcard man/*.[1-9]),$(mandir)/man$(patsubst .%,%,$(suffix $(m)))/$(notdir $(m)))

uninstall:
	@rm -f $(foreach f,$(INSTALLED),"$(DESTDIR)$(f)")
	@rmdir "$(DESTDIR)$(libdir)/mlx5vfio" "$(DESTDIR)$(includedir)/mlx5vfio" 2>/dev/null || true
	$(ldconfig)

clean:
	rm -rf $(BUILD)
