/* The door between Python and compiled code: arrays are checked by their headers, code is called by its address.

   Compiled code is one function of one array of words, `int64_t f(int64_t *words)` (or `double f(…)`). words[0] is set
   to 1 by code that ends regularly; the other words are its arguments in order: an array is its address, its lengths, and
   its strides unless it is in C order; a number is its value. Three types use it, all called by CPython's vectorcall:

   Kernel   an entry point with its arguments as they are: checks their types, raises TypeError where one does not fit
   Way      a public function of one state for one model: checks the inputs, makes the results; None where an input
            does not fit, or the code refuses it
   Door     a public function of one state: finds the way of the model that is its first argument, or several in a tuple,
            or a dictionary by the name that follows the first input of ways, or of such dictionaries by the next

   Public APIs of CPython and NumPy alone. All calls hold the interpreter's lock, but those of kernels that release it. */
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

#define WORDS 128    /* of one call */
#define AXES 6
#define INPUTS 16
#define OUTPUTS 4

typedef int64_t (*integer_code)(int64_t *);
typedef double (*double_code)(int64_t *);

static PyObject *ways_name;    /* "_ways" */

static int number_type(char kind) {
    switch (kind) {
    case 'd': return NPY_DOUBLE;
    case 'l': return NPY_INT64;
    case 'i': return NPY_INT32;
    case '?': return NPY_BOOL;
    case 'D': return NPY_CDOUBLE;
    default: return -1;
    }
}

/* An array of this type with these flags, in the machine's order of bytes; null for all else. */
static inline PyArrayObject *plain_array(PyObject *object, int type, int axes, int flags) {
    if (!PyArray_CheckExact(object)) return NULL;
    PyArrayObject *array = (PyArrayObject *)object;
    if (PyArray_TYPE(array) != type || PyArray_NDIM(array) != axes || !PyArray_CHKFLAGS(array, flags)
        || PyArray_ISBYTESWAPPED(array)) return NULL;
    return array;
}

/* ---- Kernel ---------------------------------------------------------------------------------------------- */

typedef struct { char kind, axes, order; } Argument;    /* axes 0: a number; order C, or A of any strides */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    void *address;
    char result;         /* of numba's types: ? boolean, l int64, d float64, v void */
    char releases;       /* the interpreter's lock */
    int count;
    Argument arguments[INPUTS * 2];
    PyObject *owner;     /* of the code */
} Kernel;

static PyObject *kernel_call(PyObject *object, PyObject *const *arguments, size_t flags, PyObject *names) {
    Kernel *self = (Kernel *)object;
    int64_t words[WORDS];
    int64_t *word = words;
    double real = 0.0;
    int64_t integer = 0;
    if (PyVectorcall_NARGS(flags) != self->count || names) goto unsuited;
    *word++ = 0;
    for (int k = 0; k < self->count; k++) {
        const Argument expected = self->arguments[k];
        PyObject *given = arguments[k];
        if (expected.axes) {
            const int strided = expected.order == 'A';
            PyArrayObject *array = plain_array(given, number_type(expected.kind), expected.axes,
                                               strided ? NPY_ARRAY_BEHAVED : NPY_ARRAY_CARRAY);
            if (!array) goto unsuited;
            *word++ = (int64_t)(intptr_t)PyArray_DATA(array);
            for (int axis = 0; axis < expected.axes; axis++) *word++ = PyArray_DIM(array, axis);
            for (int axis = 0; strided && axis < expected.axes; axis++) *word++ = PyArray_STRIDE(array, axis);
        } else if (expected.kind == 'd') {
            double value = PyFloat_AsDouble(given);
            if (value == -1.0 && PyErr_Occurred()) goto unsuited;
            memcpy(word++, &value, sizeof value);
        } else {
            PyObject *index = PyNumber_Index(given);
            if (!index) goto unsuited;
            *word = PyLong_AsLongLong(index);
            Py_DECREF(index);
            if (*word++ == -1 && PyErr_Occurred()) goto unsuited;
        }
    }
    PyThreadState *state = self->releases ? PyEval_SaveThread() : NULL;
    if (self->result == 'd') real = ((double_code)self->address)(words);
    else integer = ((integer_code)self->address)(words);
    if (state) PyEval_RestoreThread(state);
    if (!words[0]) return PyErr_NoMemory();    /* what ends irregularly: an array could not be made */
    switch (self->result) {
    case '?': return PyBool_FromLong(integer != 0);
    case 'l': return PyLong_FromLongLong(integer);
    case 'd': return PyFloat_FromDouble(real);
    default: Py_RETURN_NONE;
    }
unsuited:
    PyErr_SetString(PyExc_TypeError, "no compiled version for these argument types");
    return NULL;
}

static PyObject *kernel_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    Py_ssize_t address;
    const char *codes, *result;
    int releases;
    PyObject *owner;
    static char *names[] = {"address", "arguments", "result", "releases", "owner", NULL};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "nsspO", names, &address, &codes, &result, &releases, &owner))
        return NULL;
    size_t length = strlen(codes), words = 1;
    if (length % 3 || length / 3 > INPUTS * 2) return PyErr_Format(PyExc_ValueError, "arguments are '%s'", codes);
    Kernel *self = (Kernel *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->vectorcall = kernel_call;
    self->address = (void *)address;
    self->result = result[0];
    self->releases = (char)releases;
    self->count = (int)(length / 3);
    for (int k = 0; k < self->count; k++) {
        Argument *argument = &self->arguments[k];
        argument->kind = codes[3 * k];
        argument->axes = (char)(codes[3 * k + 1] - '0');
        argument->order = codes[3 * k + 2];
        words += 1 + 2 * (size_t)argument->axes;
        if (number_type(argument->kind) < 0 || argument->axes < 0 || argument->axes > AXES || words > WORDS) {
            Py_DECREF(self);
            return PyErr_Format(PyExc_ValueError, "arguments are '%s'", codes);
        }
    }
    self->owner = Py_NewRef(owner);
    return (PyObject *)self;
}

static void kernel_dealloc(PyObject *object) {
    Py_XDECREF(((Kernel *)object)->owner);
    Py_TYPE(object)->tp_free(object);
}

/* ---- Way ------------------------------------------------------------------------------------------------- */

typedef struct { int word, again; char kind; npy_intp length; } Input;            /* an array with one axis; in two words? */
typedef struct { int word; int axes; npy_intp shape[AXES]; } Output;              /* of float64 */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    integer_code code;
    int64_t good;          /* what the code returns where it accepts the state; -1: anything but 0 */
    int size, inputs, outputs;
    int64_t words[WORDS];
    Input input[INPUTS];
    Output output[OUTPUTS];
    PyTypeObject *result;  /* a class of tuples that takes several outputs; null: there is one */
    double *part;          /* with no outputs: where the result begins in an array of the words, a number if it has no axes */
    Output part_shape;
    PyObject *owners;      /* of the code, and of arrays in the words */
} Way;

static inline PyObject *way_part(Way *self) {
    if (self->part_shape.axes == 0) {
        PyObject *number = PyArrayScalar_New(Double);
        if (number) PyArrayScalar_ASSIGN(number, Double, *self->part);
        return number;
    }
    PyObject *array = PyArray_SimpleNew(self->part_shape.axes, self->part_shape.shape, NPY_DOUBLE);
    if (array)
        memcpy(PyArray_DATA((PyArrayObject *)array), self->part, (size_t)PyArray_NBYTES((PyArrayObject *)array));
    return array;
}

static PyObject *way_call(PyObject *object, PyObject *const *arguments, size_t flags, PyObject *names) {
    Way *self = (Way *)object;
    int64_t words[WORDS];
    PyObject *arrays[OUTPUTS];
    if (PyVectorcall_NARGS(flags) != self->inputs || names) Py_RETURN_NONE;
    memcpy(words, self->words, sizeof words[0] * (size_t)self->size);
    for (int k = 0; k < self->inputs; k++) {
        const Input *input = &self->input[k];
        PyArrayObject *array = plain_array(arguments[k], input->kind == 'd' ? NPY_DOUBLE : NPY_BOOL, 1,
                                           NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED);
        if (!array || PyArray_DIM(array, 0) != input->length) Py_RETURN_NONE;
        words[input->word] = (int64_t)(intptr_t)PyArray_DATA(array);
        if (input->again) words[input->again] = words[input->word];
    }
    for (int k = 0; k < self->outputs; k++) {
        Output *output = &self->output[k];
        arrays[k] = PyArray_SimpleNew(output->axes, output->shape, NPY_DOUBLE);
        if (!arrays[k]) {
            while (k--) Py_DECREF(arrays[k]);
            return NULL;
        }
        words[output->word] = (int64_t)(intptr_t)PyArray_DATA((PyArrayObject *)arrays[k]);
    }
    int64_t answer = self->code(words);
    if (!words[0] || (self->good < 0 ? answer == 0 : answer != self->good)) {
        for (int k = 0; k < self->outputs; k++) Py_DECREF(arrays[k]);
        Py_RETURN_NONE;
    }
    if (self->part) return way_part(self);
    if (!self->result) return arrays[0];
    PyObject *result = self->result->tp_alloc(self->result, self->outputs);
    for (int k = 0; k < self->outputs; k++) {
        if (result) PyTuple_SET_ITEM(result, k, arrays[k]);
        else Py_DECREF(arrays[k]);
    }
    return result;
}

static int read_shape(PyObject *shape, Output *output) {
    Py_ssize_t axes = PyTuple_Check(shape) ? PyTuple_GET_SIZE(shape) : AXES + 1;
    if (axes > AXES) {
        PyErr_SetString(PyExc_ValueError, "a shape is a tuple of at most 6 lengths");
        return -1;
    }
    output->axes = (int)axes;
    for (Py_ssize_t k = 0; k < axes; k++) {
        output->shape[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k));
        if (output->shape[k] == -1 && PyErr_Occurred()) return -1;
    }
    return 0;
}

static PyObject *way_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    Py_ssize_t address, part = 0;
    PyObject *words, *inputs, *outputs, *result, *owners, *shape = Py_None;
    long long good;
    static char *names[] = {"address", "words", "inputs", "outputs", "good", "result", "owners", "part", "shape", NULL};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "nO!O!O!LOO!|nO", names, &address, &PyTuple_Type, &words,
                                     &PyTuple_Type, &inputs, &PyTuple_Type, &outputs, &good, &result, &PyTuple_Type,
                                     &owners, &part, &shape))
        return NULL;
    Py_ssize_t size = PyTuple_GET_SIZE(words), given = PyTuple_GET_SIZE(inputs), made = PyTuple_GET_SIZE(outputs);
    int several = PyType_Check(result) && PyType_IsSubtype((PyTypeObject *)result, &PyTuple_Type);
    if (size > WORDS || given > INPUTS || made > OUTPUTS || (part ? made != 0 : made < 1)
        || (several ? part != 0 : result != Py_None || made > 1)) {
        PyErr_SetString(PyExc_ValueError, "too many words, inputs or outputs, or a result that they do not make");
        return NULL;
    }
    Way *self = (Way *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->vectorcall = way_call;
    self->code = (integer_code)address;
    self->good = good;
    self->size = (int)size;
    self->part = (double *)part;
    self->owners = PyTuple_Pack(2, owners, result);
    if (!self->owners) goto failed;
    if (part && read_shape(shape, &self->part_shape)) goto failed;
    if (several) self->result = (PyTypeObject *)result;
    for (Py_ssize_t k = 0; k < size; k++) {
        self->words[k] = PyLong_AsLongLong(PyTuple_GET_ITEM(words, k));
        if (self->words[k] == -1 && PyErr_Occurred()) goto failed;
    }
    for (Py_ssize_t k = 0; k < given; k++) {
        Input *input = &self->input[self->inputs++];
        int kind;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(inputs, k), "iiCn", &input->word, &input->again, &kind, &input->length))
            goto failed;
        input->kind = (char)kind;
        if (input->word < 1 || input->word >= size || input->again < 0 || input->again >= size
            || (kind != 'd' && kind != '?')) goto wrong;
    }
    for (Py_ssize_t k = 0; k < made; k++) {
        Output *output = &self->output[self->outputs++];
        PyObject *lengths;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(outputs, k), "iO", &output->word, &lengths)) goto failed;
        if (read_shape(lengths, output)) goto failed;
        if (output->word < 1 || output->word >= size) goto wrong;
    }
    return (PyObject *)self;
wrong:
    PyErr_SetString(PyExc_ValueError, "an input or output that is in no word, or of an unknown kind");
failed:
    Py_DECREF(self);
    return NULL;
}

static void way_dealloc(PyObject *object) {
    Py_XDECREF(((Way *)object)->owners);
    Py_TYPE(object)->tp_free(object);
}

/* ---- Door ------------------------------------------------------------------------------------------------ */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Py_ssize_t number;     /* place of its ways in `model._ways` */
    PyObject *make;        /* make(model): the way of a model, which it puts there */
} Door;

static PyObject *door_call(PyObject *object, PyObject *const *arguments, size_t flags, PyObject *names) {
    Door *self = (Door *)object;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (count < 1 || names) Py_RETURN_NONE;
    PyObject *ways = PyObject_GetAttr(arguments[0], ways_name);
    if (!ways) {    /* no model */
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return NULL;
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    PyObject *way = NULL, *result = NULL;
    if (PyList_CheckExact(ways) && self->number < PyList_GET_SIZE(ways))
        way = Py_NewRef(PyList_GET_ITEM(ways, self->number));
    Py_DECREF(ways);
    if (!way || way == Py_None) {
        Py_XDECREF(way);
        way = PyObject_CallOneArg(self->make, arguments[0]);
        if (!way) return NULL;
    }
    Py_ssize_t names_used = 0;
    for (; PyDict_Check(way); names_used++) {
        Py_SETREF(way, 2 + names_used < count ? PyObject_GetItem(way, arguments[2 + names_used]) : NULL);
        if (!way) {    /* too few names, unknown ones, or what cannot be a key */
            if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_LookupError)
                && !PyErr_ExceptionMatches(PyExc_TypeError)) return NULL;
            PyErr_Clear();
            Py_RETURN_NONE;
        }
    }
    count -= names_used;
    if (PyTuple_CheckExact(way)) {
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(way) && (!result || result == Py_None); k++) {
            Py_XDECREF(result);
            result = PyObject_Vectorcall(PyTuple_GET_ITEM(way, k), arguments + 1, (size_t)(count - 1), NULL);
            if (!result) break;
        }
    } else {
        result = PyObject_Vectorcall(way, arguments + 1, (size_t)(count - 1), NULL);
    }
    Py_DECREF(way);
    return result;
}

static PyObject *door_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    Py_ssize_t number;
    PyObject *make;
    static char *names[] = {"number", "make", NULL};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "nO", names, &number, &make)) return NULL;
    Door *self = (Door *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->vectorcall = door_call;
    self->number = number;
    self->make = Py_NewRef(make);
    return (PyObject *)self;
}

static void door_dealloc(PyObject *object) {
    Py_XDECREF(((Door *)object)->make);
    Py_TYPE(object)->tp_free(object);
}

#define TYPE(Name, name, text) \
    static PyTypeObject Name##Type = { \
        PyVarObject_HEAD_INIT(NULL, 0) .tp_name = "rbd_ros.core.compiled._door." #Name, .tp_doc = text, \
        .tp_basicsize = sizeof(Name), .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, .tp_new = name##_new, \
        .tp_dealloc = name##_dealloc, .tp_call = PyVectorcall_Call, .tp_vectorcall_offset = offsetof(Name, vectorcall)}

TYPE(Kernel, kernel, "An entry point of compiled code.");
TYPE(Way, way, "A public function of one state, for one model.");
TYPE(Door, door, "A public function of one state.");

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_door", "The door between Python and compiled code.", -1,
                                    NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__door(void) {
    import_array();
    ways_name = PyUnicode_InternFromString("_ways");
    PyObject *made = PyModule_Create(&module);
    if (!made || !ways_name) return NULL;
    if (PyModule_AddType(made, &KernelType) || PyModule_AddType(made, &WayType) || PyModule_AddType(made, &DoorType)) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}
