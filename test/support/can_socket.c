/* Sockets of PF_CAN, in a process with this in LD_PRELOAD, are Unix sockets to the path in CAN_STAND_IN: a write is a
   frame, a read is a frame, as with SocketCAN. Interfaces can…  exist, and all options of raw CAN sockets are taken. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SOL_CAN_RAW 101
#define FLAGS (SOCK_CLOEXEC | SOCK_NONBLOCK)
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static unsigned char of_can[4096];

static int is_can(int fd) { return fd >= 0 && fd < (int)sizeof of_can && of_can[fd]; }

int socket(int domain, int type, int protocol)
{
    struct sockaddr_un there = {.sun_family = AF_UNIX};
    const char *path = getenv("CAN_STAND_IN");
    int fd;

    if (domain != PF_CAN || !path)
        return REAL(socket)(domain, type, protocol);
    fd = REAL(socket)(AF_UNIX, SOCK_SEQPACKET | (type & FLAGS), 0);
    if (fd < 0 || fd >= (int)sizeof of_can)
        return -1;
    strncpy(there.sun_path, path, sizeof there.sun_path - 1);
    if (connect(fd, (struct sockaddr *)&there, sizeof there) < 0)
        return -1;
    of_can[fd] = 1;
    return fd;
}

int bind(int fd, const struct sockaddr *address, socklen_t size)
{
    return is_can(fd) ? 0 : REAL(bind)(fd, address, size);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    return is_can(fd) && level == SOL_CAN_RAW ? 0 : REAL(setsockopt)(fd, level, name, value, size);
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list arguments;
    void *argument;

    va_start(arguments, request);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    if (is_can(fd) && request == SIOCGIFINDEX) {
        ((struct ifreq *)argument)->ifr_ifindex = 1;
        return 0;
    }
    return REAL(ioctl)(fd, request, argument);
}

unsigned if_nametoindex(const char *name)
{
    return strncmp(name, "can", 3) ? REAL(if_nametoindex)(name) : 1;
}

int close(int fd)
{
    if (is_can(fd))
        of_can[fd] = 0;
    return REAL(close)(fd);
}
