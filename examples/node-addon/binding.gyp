# SPDX-License-Identifier: BSD-2-Clause
#
# Core and the libuv adapter are compiled in, with the uv.h of Node's own headers and without -luv: the
# uv_* symbols are Node's. A libmlx5vfio-uv.so would bring a second libuv into the process.
{
  'variables': {
    # where mlx5vfio's source is, relative to this file
    'mlx5vfio_dir%': '../..',
  },
  'targets': [{
    'target_name': 'mlx5vfio',
    'sources': [
      'src/device.c',
      'src/environment.c',
      'src/module.c',
      'src/opening.c',
      'src/values.c',
      '<!@(ls <(mlx5vfio_dir)/core/*.c)',
      '<(mlx5vfio_dir)/adapters/libuv/uv.c',
    ],
    'include_dirs': ['<(mlx5vfio_dir)/include'],
    'defines': [
      'NAPI_VERSION=8',
      '_GNU_SOURCE',
      'MLX5VFIO_VERSION="<!(sed -n "s/^VERSION := //p" <(mlx5vfio_dir)/Makefile)"',
    ],
    'cflags_c': ['-std=c11', '-Wall', '-Wextra', '-fvisibility=hidden', '-pthread'],
    'libraries': ['-lmlx5', '-libverbs'],
    # Node unloads an addon with the last worker that had it, but a thread that opens or closes a sick
    # device is busy in it for minutes.
    'ldflags': ['-pthread', '-Wl,-z,nodelete'],
  }],
}
