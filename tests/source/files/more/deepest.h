#ifndef DEEPEST_H
#define DEEPEST_H
#define DEEPEST_FACTOR 2
#define NEVER_USED 3
#endif
