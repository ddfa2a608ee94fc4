// What a CUDA compiler brings by itself: the runtime, C's headers and min and max, also inside a
// program that has those of std. Not one header is included here before they are used.
__global__ void fill(int *x, int n)
{
    for (int i = 0; i < min(n, 8); i++)
        x[i] = max(i, 3);
}

static int numbers()
{
    size_t large = 1UL << 40;
    int bad = max(large, (size_t)7) != large || min(-1, 2) != -1 || max(-1, 2U) != ~0U;
    bad |= min(1.5f, NAN) != 1.5f || max(NAN, -2.0) != -2.0 || max(2.5f, 1.0) != 2.5;
    bad |= max(-3LL, 4LL) != 4 || min(-3L, 4L) != -3 || min(3ULL, 4ULL) != 3;
    return bad;
}

#include <algorithm>
#include <cstdio>

using namespace std; // whose min and max lose to those of the compiler

int main()
{
    char text[8];
    int *block = static_cast<int *>(malloc(sizeof(*block)));
    memset(text, 0, sizeof(text));
    *block = 7;
    int bad = numbers() | (max(size_t(*block), size_t(9)) != 9) | (min('b', 'a') != 'a') | text[0];
    free(block);
    printf("bare: %s\n", bad ? "bad" : "good");
    return bad;
}
