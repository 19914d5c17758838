"""nvidia-cudnn-frontend as the stand-in for CuPy needs it: tests/fake_cudnn.py, whose graphs can be
captured."""

import cupy
import fake_cudnn
from fake_cudnn import *  # noqa: F403


class _Graph(fake_cudnn.Graph):
    def execute(self, addresses, workspace, handle):
        run = super().execute
        cupy.launch(f"cudnn {'+'.join(self.nodes)}", lambda: run(addresses, workspace, handle))


class _Library(fake_cudnn.Library):
    def pygraph(self, **options):
        return _Graph(self, **options)


_library = _Library()
pygraph, create_handle, set_stream = _library.pygraph, _library.create_handle, _library.set_stream
destroy_handle, backend_version = _library.destroy_handle, _library.backend_version
