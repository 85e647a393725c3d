/* A stand-in for NVIDIA's driver (libcuda.so.1) for machines without a GPU. It executes nothing.
 *
 * It answers the calls of the driver API that burn's CUDA runtime makes: devices of a compute capability that the
 * test chooses, streams, events, memory (of the host, with bounds), modules and launches. The runtime above it then
 * generates every kernel of a training step and lets the real NVRTC compile it, which is what the test is about.
 *
 * A launch is checked as far as the driver would check it (a known kernel, the limits of the device, pointers to
 * memory that was given out), recorded, and not executed. So numbers that come back mean nothing; a read of at most
 * 64 bytes gives 6.0 in each word, because a device is taken into use only after it has answered 1 + 2 + 3.
 * Time on the device is counted and not measured: each launch takes 0.05 ms. The kernels with which the runtime measures
 * the speed of a device keep the host for 20 ms, which makes it a slow one: every kernel is then as fast as can be
 * expected, and autotuning takes the first candidate. With CUBECL_AUTOTUNE_SHORT_CIRCUIT=0 it tries, and compiles, all.
 *
 *   STANDIN_CAPABILITY   compute capability: 8.0 (default), 9.0
 *   STANDIN_DEVICES      number of devices, 1 if it is not set
 *   STANDIN_VERSION      version of CUDA that the driver claims: 13050
 *   STANDIN_ANSWER       what reads of at most 64 bytes give: 6
 *   STANDIN_RECORD       file for one line for each module and each launch, and for each call that a driver refuses:
 *                        `module ENTRY TARGET`, `launch ENTRY GRID BLOCK SHARED`, `refused WHY`
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_IMAGE = 200, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700 };
enum { LARGEST_MODULE = 64 << 20, MOST_PARAMETERS = 256, MOST_BLOCKS = 65536 };

#define MEMORY ((size_t)16 << 30)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double clock_ms;

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static void record(const char *format, ...) {
    static int file = -2;
    char line[2048];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof line - 2) length = sizeof line - 2;
    line[length++] = '\n';
    if (file == -2) {
        const char *path = getenv("STANDIN_RECORD");
        file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    }
    if (file >= 0 && write(file, line, length) < 0) abort();
}

#define REFUSE(code, ...) do { record("refused " __VA_ARGS__); return code; } while (0)

/* Devices */

static int major_version(void) { return atoi(setting("STANDIN_CAPABILITY", "8.0")); }
static int minor_version(void) {
    const char *point = strchr(setting("STANDIN_CAPABILITY", "8.0"), '.');
    return point ? atoi(point + 1) : 0;
}
static int devices(void) { return atoi(setting("STANDIN_DEVICES", "1")); }
static int context_of[64];

/* What CUDA's programming guide gives for compute capabilities 8.0 and 9.0; SMs as the A100 and the H100 have. */
static int shared_limit(void) { return (major_version() >= 9 ? 227 : 163) * 1024; }

int cuInit(unsigned flags) { return flags ? INVALID_VALUE : devices() ? OK : NO_DEVICE; }
int cuDriverGetVersion(int *version) { *version = atoi(setting("STANDIN_VERSION", "13050")); return OK; }
int cuDeviceGetCount(int *count) { *count = devices(); return OK; }
int cuDeviceGet(int *device, int index) {
    if (index < 0 || index >= devices()) REFUSE(101, "device %d", index);
    *device = index;
    return OK;
}
int cuDeviceGetName(char *name, int length, int device) {
    (void)device;
    snprintf(name, length, "stand-in %d.%d that executes nothing", major_version(), minor_version());
    return OK;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = MEMORY; return OK; }
int cuDeviceGetPCIBusId(char *text, int length, int device) {
    snprintf(text, length, "0000:%02x:00.0", device + 1);
    return OK;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    switch (attribute) {
    case 1: case 2: case 3: *value = 1024; return OK;            /* threads of a block, its x and y */
    case 4: *value = 64; return OK;                              /* z of a block */
    case 5: *value = 2147483647; return OK;                      /* blocks of a grid: x, y, z */
    case 6: case 7: *value = 65535; return OK;
    case 8: *value = 48 * 1024; return OK;                       /* shared memory without asking for more */
    case 10: *value = 32; return OK;                             /* threads of a warp */
    case 16: *value = major_version() >= 9 ? 132 : 108; return OK; /* multiprocessors */
    case 75: *value = major_version(); return OK;
    case 76: *value = minor_version(); return OK;
    case 81: *value = shared_limit() + 1024; return OK;          /* shared memory of a multiprocessor */
    case 97: *value = shared_limit(); return OK;                 /* shared memory of a block that asks for it */
    case 115: *value = 1; return OK;                             /* memory pools */
    }
    REFUSE(INVALID_VALUE, "attribute %d is not known here", attribute);
}

/* Contexts, streams, events */

static __thread void *current;
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &context_of[device]; return OK; }
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return OK; }
int cuCtxSetCurrent(void *context) { current = context; return OK; }
int cuCtxGetCurrent(void **context) { *context = current; return OK; }
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return OK; }
int cuStreamCreate(void **stream, unsigned flags) {
    (void)flags;
    if (!current) REFUSE(201, "a stream without a context");
    *stream = malloc(1);
    return OK;
}
int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) { (void)priority; return cuStreamCreate(stream, flags); }
int cuStreamDestroy_v2(void *stream) { free(stream); return OK; }
int cuStreamSynchronize(void *stream) { (void)stream; return OK; }
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) { (void)stream; (void)flags; return event ? OK : INVALID_VALUE; }
int cuEventCreate(void **event, unsigned flags) { (void)flags; *event = calloc(1, sizeof(double)); return OK; }
int cuEventDestroy_v2(void *event) { free(event); return OK; }
int cuEventRecord(void *event, void *stream) {
    (void)stream;
    pthread_mutex_lock(&lock);
    *(double *)event = clock_ms;
    pthread_mutex_unlock(&lock);
    return OK;
}
int cuEventQuery(void *event) { (void)event; return OK; }
int cuEventSynchronize(void *event) { (void)event; return OK; }
int cuEventElapsedTime_v2(float *ms, void *start, void *end) { *ms = (float)(*(double *)end - *(double *)start); return OK; }
int cuEventElapsedTime(float *ms, void *start, void *end) { return cuEventElapsedTime_v2(ms, start, end); }

/* Memory: pages of the host that exist when they are written */

static struct { uint64_t begin; size_t size; } blocks[MOST_BLOCKS];
static int used_blocks;
static size_t used_bytes;

/* Whether all of it is within one block that was given out. */
static int within(uint64_t pointer, size_t size) {
    int found = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < used_blocks && !found; i++)
        found = pointer >= blocks[i].begin && pointer + size <= blocks[i].begin + blocks[i].size;
    pthread_mutex_unlock(&lock);
    return found;
}

int cuMemAlloc_v2(uint64_t *pointer, size_t size) {
    if (!size) REFUSE(INVALID_VALUE, "an allocation of 0 bytes");
    pthread_mutex_lock(&lock);
    int fits = used_bytes + size <= MEMORY && used_blocks < MOST_BLOCKS;
    void *block = fits ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) : MAP_FAILED;
    if (block != MAP_FAILED) {
        *pointer = blocks[used_blocks].begin = (uint64_t)block;
        blocks[used_blocks++].size = size;
        used_bytes += size;
    }
    pthread_mutex_unlock(&lock);
    return block == MAP_FAILED ? OUT_OF_MEMORY : OK;
}
int cuMemFree_v2(uint64_t pointer) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < used_blocks; i++)
        if (blocks[i].begin == pointer) {
            munmap((void *)pointer, blocks[i].size);
            used_bytes -= blocks[i].size;
            blocks[i] = blocks[--used_blocks];
            pthread_mutex_unlock(&lock);
            return OK;
        }
    pthread_mutex_unlock(&lock);
    REFUSE(INVALID_VALUE, "memory is freed that was not given out");
}
int cuMemAllocAsync(uint64_t *pointer, size_t size, void *stream) { (void)stream; return cuMemAlloc_v2(pointer, size); }
int cuMemFreeAsync(uint64_t pointer, void *stream) { (void)stream; return cuMemFree_v2(pointer); }
int cuMemAllocHost_v2(void **pointer, size_t size) { return posix_memalign(pointer, 512, size ? size : 1) ? OUT_OF_MEMORY : OK; }
int cuMemFreeHost(void *pointer) { free(pointer); return OK; }
int cuMemGetInfo_v2(size_t *unused, size_t *total) { *unused = MEMORY - used_bytes; *total = MEMORY; return OK; }

static void answer(void *to, size_t size) {
    float word = (float)atof(setting("STANDIN_ANSWER", "6"));
    for (size_t at = 0; at + 4 <= size && size <= 64; at += 4) memcpy((char *)to + at, &word, 4);
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream) {
    (void)stream;
    if (!within(to, size)) REFUSE(INVALID_VALUE, "%zu bytes to memory that was not given out", size);
    memcpy((void *)to, from, size);
    return OK;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream) {
    (void)stream;
    if (!within(from, size)) REFUSE(INVALID_VALUE, "%zu bytes from memory that was not given out", size);
    memcpy(to, (void *)from, size);
    answer(to, size);
    return OK;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream) {
    (void)stream;
    if (!within(to, size) || !within(from, size)) REFUSE(INVALID_VALUE, "%zu bytes between memory that was not given out", size);
    memmove((void *)to, (void *)from, size);
    return OK;
}

/* One side of `CUDA_MEMCPY2D`, and the whole. */
struct side { size_t x, y; unsigned kind; void *host; uint64_t device; void *array; size_t pitch; };
struct rectangle { struct side from, to; size_t width, height; };

static char *begin_of(const struct side *side, size_t width, size_t height) {
    uint64_t begin = side->kind == 1 ? (uint64_t)side->host : side->device;
    begin += side->y * side->pitch + side->x;
    if (side->kind == 2 && !within(begin, height ? (height - 1) * side->pitch + width : 0)) return NULL;
    return (char *)begin;
}

int cuMemcpy2DAsync_v2(const struct rectangle *copy, void *stream) {
    (void)stream;
    char *from = begin_of(&copy->from, copy->width, copy->height), *to = begin_of(&copy->to, copy->width, copy->height);
    if (!from || !to) REFUSE(INVALID_VALUE, "%zu × %zu bytes outside of memory that was given out", copy->height, copy->width);
    if (copy->from.pitch < copy->width || copy->to.pitch < copy->width) REFUSE(INVALID_VALUE, "a pitch below the width");
    for (size_t row = 0; row < copy->height; row++)
        memcpy(to + row * copy->to.pitch, from + row * copy->from.pitch, copy->width);
    if (copy->to.kind == 1 && copy->to.pitch == copy->width) answer(to, copy->width * copy->height);
    return OK;
}

/* The tensor maps of compute capability 9.0, with the limits that the driver API documents. */
int cuTensorMapEncodeTiled(void *map, unsigned type, unsigned rank, void *address, const uint64_t *shape, const uint64_t *strides,
                           const unsigned *box, const unsigned *steps, int interleave, int swizzle, int promotion, int fill) {
    (void)type; (void)interleave; (void)swizzle; (void)promotion; (void)fill;
    if (rank < 1 || rank > 5) REFUSE(INVALID_VALUE, "a tensor map of rank %u", rank);
    if ((uint64_t)address % 16 || !within((uint64_t)address, 1)) REFUSE(INVALID_VALUE, "a tensor map of no memory");
    for (unsigned axis = 0; axis < rank; axis++) {
        if (!shape[axis] || shape[axis] > (uint64_t)1 << 32) REFUSE(INVALID_VALUE, "a tensor map of an axis of %llu", (unsigned long long)shape[axis]);
        if (!box[axis] || box[axis] > 256) REFUSE(INVALID_VALUE, "a tensor map with a box of %u", box[axis]);
        if (!steps[axis] || steps[axis] > 8) REFUSE(INVALID_VALUE, "a tensor map with steps of %u", steps[axis]);
        if (axis + 1 < rank && (strides[axis] % 16 || strides[axis] >= (uint64_t)1 << 40))
            REFUSE(INVALID_VALUE, "a tensor map with a stride of %llu", (unsigned long long)strides[axis]);
    }
    memset(map, 0, 128);
    return OK;
}

/* Modules and launches */

struct kernel {
    char name[512];
    int parameters, is_pointer[MOST_PARAMETERS];
    int shared;
    long threads; /* at most, 0 where the kernel does not say */
};

int cuModuleLoadData(void **module, const void *image) {
    const char *text = image;
    size_t length = strnlen(text, LARGEST_MODULE);
    const char *entry = length < LARGEST_MODULE ? memmem(text, length, ".entry ", 7) : NULL;
    const char *target = length < LARGEST_MODULE ? memmem(text, length, ".target ", 8) : NULL;
    if (!entry || !target) REFUSE(INVALID_IMAGE, "a module that is not PTX");
    struct kernel *kernel = calloc(1, sizeof *kernel);
    char architecture[32] = "";
    sscanf(target + 8, "%31[a-z0-9_]", architecture);
    sscanf(entry + 7, "%511[A-Za-z0-9_$]", kernel->name);
    const char *body = strchr(entry, '{'), *end = body;
    if (!body) REFUSE(INVALID_IMAGE, "%s has no body", kernel->name);
    for (const char *at = entry; (at = memmem(at, end - at, ".param ", 7)); at += 7) {
        const char *line = memchr(at, '\n', end - at);
        if (kernel->parameters == MOST_PARAMETERS) REFUSE(INVALID_IMAGE, "%s has too many parameters", kernel->name);
        kernel->is_pointer[kernel->parameters++] = memmem(at, (line ? line : end) - at, " .ptr ", 6) != NULL;
    }
    const char *threads = memmem(entry, end - entry, ".maxntid ", 9);
    if (threads) {
        long sides[3] = {1, 1, 1};
        sscanf(threads + 9, "%ld, %ld, %ld", &sides[0], &sides[1], &sides[2]);
        kernel->threads = sides[0] * sides[1] * sides[2];
    }
    record("module %s %s", kernel->name, architecture);
    *module = kernel;
    return OK;
}
int cuModuleGetFunction(void **function, struct kernel *kernel, const char *name) {
    if (strcmp(kernel->name, name)) REFUSE(NOT_FOUND, "the kernel %s of a module that has %s", name, kernel->name);
    *function = kernel;
    return OK;
}
int cuModuleUnload(void *module) { (void)module; return OK; }
int cuFuncSetAttribute(struct kernel *kernel, int attribute, int value) {
    if (attribute != 8) REFUSE(INVALID_VALUE, "the attribute %d of a kernel", attribute);
    if (value < 0 || value > shared_limit()) REFUSE(INVALID_VALUE, "%d bytes of shared memory for %s", value, kernel->name);
    kernel->shared = value;
    return OK;
}
int cuLaunchKernel(struct kernel *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    (void)stream; (void)extra;
    if (!gx || !gy || !gz || gx > 2147483647u || gy > 65535 || gz > 65535)
        REFUSE(INVALID_VALUE, "a grid of %u × %u × %u for %s", gx, gy, gz, kernel->name);
    unsigned long threads = (unsigned long)bx * by * bz;
    if (!threads || threads > 1024 || bz > 64 || (kernel->threads && threads > (unsigned long)kernel->threads))
        REFUSE(INVALID_VALUE, "a block of %u × %u × %u for %s", bx, by, bz, kernel->name);
    if (shared > (unsigned)(kernel->shared > 48 * 1024 ? kernel->shared : 48 * 1024))
        REFUSE(INVALID_VALUE, "%u bytes of shared memory for %s", shared, kernel->name);
    for (int i = 0; i < kernel->parameters; i++) {
        if (!parameters || !parameters[i]) REFUSE(INVALID_VALUE, "%s without its parameter %d", kernel->name, i);
        uint64_t pointer = kernel->is_pointer[i] ? *(uint64_t *)parameters[i] : 0;
        /* An empty buffer has no memory. */
        if (pointer && !within(pointer, 1)) REFUSE(ILLEGAL_ADDRESS, "%s with a pointer to memory that was not given out", kernel->name);
    }
    if (strstr(kernel->name, "_throughput_")) usleep(20000);
    pthread_mutex_lock(&lock);
    clock_ms += 0.05;
    pthread_mutex_unlock(&lock);
    record("launch %s %u,%u,%u %u,%u,%u %u", kernel->name, gx, gy, gz, bx, by, bz, shared);
    return OK;
}

/* NVRTC asks for private tables and does without. */
int cuGetExportTable(const void **table, const void *which) { (void)which; *table = NULL; return NOT_FOUND; }

/* Errors */

int cuGetErrorName(int code, const char **name) {
    switch (code) {
    case OK: *name = "CUDA_SUCCESS"; break;
    case INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
    case INVALID_IMAGE: *name = "CUDA_ERROR_INVALID_IMAGE"; break;
    case NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; break;
    case ILLEGAL_ADDRESS: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    default: *name = "CUDA_ERROR_UNKNOWN"; break;
    }
    return OK;
}
int cuGetErrorString(int code, const char **text) { (void)code; *text = "refused by the stand-in, whose record says why"; return OK; }
