/* Stands before the real NVRTC, under the name that the CUDA runtime looks for first (libnvrtc.so), and keeps what it
 * is given: the source of every program, its options, and whether NVRTC accepted it. Autotuning drops a kernel that
 * does not compile without a word, so that nothing but this would show it.
 *
 *   RECORDER_LIBRARY   the real NVRTC
 *   RECORDER_FOLDER    gets `N.cu` for each program, `N.log` for one that is refused, and the file `programs`, a line
 *                      for each program: `N RESULT MILLISECONDS OPTIONS`
 *   RECORDER_SPOIL     a program whose text contains this is made wrong before it is compiled
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void *library;

static void open_library(void) {
    library = dlopen(getenv("RECORDER_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    if (!library) { fprintf(stderr, "%s\n", dlerror()); abort(); }
}

static void *real(const char *name) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_library);
    void *function = dlsym(library, name);
    if (!function) { fprintf(stderr, "NVRTC has no %s\n", name); abort(); }
    return function;
}

static int programs;

static void save(int number, const char *kind, const char *text) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.%s", getenv("RECORDER_FOLDER"), number, kind);
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file)) abort();
}

/* NVRTC's handle of a program, and its number here. */
struct program { void *real; int number; };

int nvrtcCreateProgram(struct program **program, const char *source, const char *name, int headers, const char *const *texts, const char *const *names) {
    int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *) = real("nvrtcCreateProgram");
    const char *spoil = getenv("RECORDER_SPOIL");
    char *given = NULL;
    if (asprintf(&given, "%s%s", spoil && *spoil && strstr(source, spoil) ? "this_is_not_cuda;\n" : "", source) < 0) abort();
    *program = calloc(1, sizeof **program);
    (*program)->number = __sync_fetch_and_add(&programs, 1);
    save((*program)->number, "cu", given);
    int result = create(&(*program)->real, given, name, headers, texts, names);
    free(given);
    return result;
}

int nvrtcGetProgramLogSize(struct program *program, size_t *size) {
    int (*function)(void *, size_t *) = real("nvrtcGetProgramLogSize");
    return function(program->real, size);
}
int nvrtcGetProgramLog(struct program *program, char *log) {
    int (*function)(void *, char *) = real("nvrtcGetProgramLog");
    return function(program->real, log);
}

int nvrtcCompileProgram(struct program *program, int count, const char *const *options) {
    int (*compile)(void *, int, const char *const *) = real("nvrtcCompileProgram");
    struct timespec begun, done;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    int result = compile(program->real, count, options);
    clock_gettime(CLOCK_MONOTONIC, &done);
    char line[4096], path[4096];
    long ms = (done.tv_sec - begun.tv_sec) * 1000 + (done.tv_nsec - begun.tv_nsec) / 1000000;
    int length = snprintf(line, sizeof line, "%d %d %ld", program->number, result, ms);
    for (int i = 0; i < count && length < (int)sizeof line; i++)
        length += snprintf(line + length, sizeof line - length, " %s", options[i]);
    if (length > (int)sizeof line - 2) length = sizeof line - 2;
    line[length++] = '\n';
    snprintf(path, sizeof path, "%s/programs", getenv("RECORDER_FOLDER"));
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0 || write(file, line, length) != length) abort();
    close(file);
    size_t size = 0;
    if (result && !nvrtcGetProgramLogSize(program, &size) && size) {
        char *log = calloc(1, size + 1);
        nvrtcGetProgramLog(program, log);
        save(program->number, "log", log);
        free(log);
    }
    return result;
}

int nvrtcDestroyProgram(struct program **program) {
    int (*function)(void **) = real("nvrtcDestroyProgram");
    int result = function(&(*program)->real);
    free(*program);
    *program = NULL;
    return result;
}
int nvrtcGetPTXSize(struct program *program, size_t *size) {
    int (*function)(void *, size_t *) = real("nvrtcGetPTXSize");
    return function(program->real, size);
}
int nvrtcGetPTX(struct program *program, char *text) {
    int (*function)(void *, char *) = real("nvrtcGetPTX");
    return function(program->real, text);
}
int nvrtcVersion(int *major, int *minor) {
    int (*function)(int *, int *) = real("nvrtcVersion");
    return function(major, minor);
}
const char *nvrtcGetErrorString(int result) {
    const char *(*function)(int) = real("nvrtcGetErrorString");
    return function(result);
}
