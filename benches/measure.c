/* Runs a command several times and prints `name value` lines: wall and CPU time in ms, peak memory in MiB.
 *
 *     measure TIMES COMMAND [ARGUMENT…]
 *
 * A program of its own, and a small one: the kernel counts into a child's peak what its parent had resident when it
 * was forked, so a large parent would be measured instead. The command's output is thrown away. */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double ms(struct timeval time) { return time.tv_sec * 1e3 + time.tv_usec / 1e3; }

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: measure TIMES COMMAND [ARGUMENT...]\n");
        return 2;
    }
    for (int left = atoi(arguments[1]); left > 0; left--) {
        struct timespec began, ended;
        struct rusage used;
        int status;
        clock_gettime(CLOCK_MONOTONIC, &began);
        pid_t child = fork();
        if (child < 0) {
            perror("measure: fork");
            return 2;
        }
        if (child == 0) {
            int nowhere = open("/dev/null", O_WRONLY);
            dup2(nowhere, STDOUT_FILENO);
            execvp(arguments[2], arguments + 2);
            perror(arguments[2]);
            _exit(127);
        }
        if (wait4(child, &status, 0, &used) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            fprintf(stderr, "measure: %s failed\n", arguments[2]);
            return 1;
        }
        clock_gettime(CLOCK_MONOTONIC, &ended);
        printf("wall_ms %.3f\n", (ended.tv_sec - began.tv_sec) * 1e3 + (ended.tv_nsec - began.tv_nsec) / 1e6);
        printf("cpu_ms %.3f\n", ms(used.ru_utime) + ms(used.ru_stime));
        printf("peak_mib %.3f\n", used.ru_maxrss / 1024.0);
    }
    return 0;
}
