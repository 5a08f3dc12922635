"""The library of a device, called by ctypes: kernels/torch/operations.h says what it computes."""

import ctypes
import os

import torch

WORKSPACE = 4096  # LAMBCAST_WORKSPACE


FULL, ONEBIT, SILENT = range(3)  # LAMBCAST_FULL and so on
FORMATS = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}  # LAMBCAST_FP32 and so on


class Weights(ctypes.Structure):
    """lambcast_weights: fp32 masters, and the copy in 16 bits or None. Both must outlive it."""
    _fields_ = [("p", ctypes.c_void_p), ("copy", ctypes.c_void_p), ("copy_format", ctypes.c_int)]

    def __init__(self, masters, copy):
        kept = copy is not None
        super().__init__(masters.data_ptr(), copy.data_ptr() if kept else None,
                         FORMATS[copy.dtype] if kept else 0)


class Gradient(ctypes.Structure):
    """lambcast_gradient: values as they arrive, and the factor of a step, a tensor of one float, or
    None for 1. Both must outlive it."""
    _fields_ = [("values", ctypes.c_void_p), ("format", ctypes.c_int), ("factor", ctypes.c_void_p)]

    def __init__(self, values, factor=None):
        super().__init__(values.data_ptr(), FORMATS[values.dtype],
                         None if factor is None else factor.data_ptr())


class ZeroOnePolicy(ctypes.Structure):
    """lambcast_zero_one_policy"""
    _fields_ = [(name, ctypes.c_int) for name in (
        "var_interval", "var_counter", "local_interval", "local_counter", "frozen")]

    def values(self):
        return {name: getattr(self, name) for name, _ in self._fields_}


class Options(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in (
        "lr", "beta1", "beta2", "eps", "weight_decay", "max_coeff", "min_coeff", "coeff_beta",
        "factor_max", "factor_min", "factor_threshold")] + [("moves_unseen", ctypes.c_int)]


def _folders():
    if "LAMBCAST_TORCH_LIBRARIES" in os.environ:
        yield os.environ["LAMBCAST_TORCH_LIBRARIES"]
    yield os.path.dirname(__file__)


class Library:
    """Calls lambcast_NAME with tensors as pointers and the current stream, raises what it says."""

    def __init__(self, path, device):
        self._functions = ctypes.CDLL(path)
        self._functions.lambcast_error.restype = ctypes.c_char_p
        self._functions.lambcast_padded.restype = ctypes.c_size_t
        self.device = device

    def _argument(self, value):
        if value is None:
            return ctypes.c_void_p()
        if isinstance(value, torch.Tensor):
            if not value.is_contiguous() or value.device.type != self.device.type:
                raise ValueError(f"lambcast: a tensor on {value.device} in strides {value.stride()}")
            return ctypes.c_void_p(value.data_ptr())
        if isinstance(value, (Gradient, Options, Weights)):
            return ctypes.byref(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return value
        return ctypes.c_size_t(value) if isinstance(value, int) else ctypes.c_double(value)

    def call(self, name, *arguments):
        stream = None
        if self.device.type == "cuda":
            stream = ctypes.c_void_p(torch.cuda.current_stream(self.device).cuda_stream)
        function = getattr(self._functions, "lambcast_" + name)
        if function(*map(self._argument, arguments), stream or ctypes.c_void_p()) != 0:
            raise RuntimeError("lambcast: " + self._functions.lambcast_error().decode())

    def padded(self, elements, ranks):
        return self._functions.lambcast_padded(ctypes.c_size_t(elements), ctypes.c_int(ranks))

    def zero_one_kind(self, policy, step):
        return self._functions.lambcast_zero_one_kind(ctypes.byref(policy), ctypes.c_int(step))

    def zero_one_advance(self, policy, step, *settings):
        self._functions.lambcast_zero_one_advance(ctypes.byref(policy), ctypes.c_int(step),
                                                  *map(ctypes.c_int, settings))

    def tensors(self, sizes):
        return Tensors(self, sizes)


class Tensors:
    """The tensors of a flat buffer, with a learning rate and a weight decay each."""

    def __init__(self, library, sizes):
        self._library = library
        self._count = len(sizes)
        self._rates = None
        made = ctypes.c_void_p()
        status = library._functions.lambcast_tensors_create(
            (ctypes.c_size_t * self._count)(*sizes), ctypes.c_size_t(self._count),
            ctypes.byref(made))
        if status != 0:
            raise RuntimeError("lambcast: " + library._functions.lambcast_error().decode())
        self.handle = made

    def set(self, lr, weight_decay):
        if self._rates == (lr, weight_decay):
            return
        array = ctypes.c_double * self._count
        self._library.call("tensors_set", self.handle, array(*lr), array(*weight_decay))
        self._rates = (lr, weight_decay)

    def __del__(self):
        if getattr(self, "handle", None):
            self._library._functions.lambcast_tensors_destroy(self.handle)


_loaded = {}


def library_for(device):
    """Of the kernels for a GPU, of the references for a CPU."""
    name = f"liblambcast_torch_{device.type}.so"
    if name not in _loaded:
        for folder in _folders():
            path = os.path.join(folder, name)
            if os.path.exists(path):
                _loaded[name] = path
                break
        else:
            raise ImportError(f"lambcast: {name} is neither in LAMBCAST_TORCH_LIBRARIES nor beside "
                              f"{__file__}; build the target lambcast_torch_{device.type}")
    return Library(_loaded[name], device)
