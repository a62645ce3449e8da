// scaling.launch(x, y, n): addresses of device memory as integers.
#include <Python.h>

#include <cstdint>

extern "C" void launch_scale(const float *x, float *y, int n);

static PyObject *launch(PyObject *, PyObject *args)
{
    unsigned long long x = 0, y = 0;
    int n = 0;
    if (!PyArg_ParseTuple(args, "KKi", &x, &y, &n)) return nullptr;
    launch_scale(reinterpret_cast<const float *>(static_cast<uintptr_t>(x)),
                 reinterpret_cast<float *>(static_cast<uintptr_t>(y)), n);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"launch", launch, METH_VARARGS, "Scale n elements."}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "scaling", nullptr, -1, methods};

PyMODINIT_FUNC PyInit_scaling() { return PyModule_Create(&module); }
