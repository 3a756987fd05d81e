/* limit.c -- how fast can this computation be on this CPU?
 *
 * The hand-written SIMD limit of what a sweep without step statistics computes: whole 20-step
 * episodes of Life Drift's long_term_stability (version 0) under the uniform random policy,
 * with every running sum of the library's state and the grade, return and cascade count of each
 * episode. Episodes lie side by side in the lanes of vectors, play from start to end in
 * registers and first-level cache, and OpenMP spreads them over the cores.
 *
 * In: every rule of the step, the clipped reward, eight fresh 16-bit uniforms and one fresh
 * action a step, all nine components of the grade (their weights come at run time, so none can
 * be dropped). Focus moves neither reward nor grade: gcc drops it, as XLA does from the sweep.
 * Left out: observations, rewards and states written to memory, tasks or dynamics chosen at run
 * time, policies that look at the state, the end of an episode, keys, statistics over episodes.
 *
 *   gcc -O3 -march=native -fopenmp -fPIC -shared limit.c -o limit.so
 *
 * The vectors are GCC's own: it compiles anywhere, and is fast where a register holds eight
 * floats and a lookup in them is one instruction (AVX2 vpermps; AVX-512 the same, 16 lanes). */
#include <stdint.h>
#include <string.h>

/* Without these options gcc 12 does every minimum and maximum lane by lane: 3 times slower. */
#pragma GCC optimize("finite-math-only", "no-signed-zeros")

#ifdef __AVX512F__
#define LANES 16
#else
#define LANES 8
#endif
enum { GROUP = 2 }; /* vectors that go through a step together: one works while the other waits */
#define EACH(g) _Pragma("GCC unroll 4") for (int g = 0; g < GROUP; g++)
enum { STEPS = 20, WORDS = 5 }; /* WORDS: 32-bit random words a step */
typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * LANES)));

static inline vf splat(float x) { return x - (vf){0}; }
static inline vf vmin(vf x, vf y) /* gcc makes one instruction of the loop */
{
    for (int k = 0; k < LANES; k++) x[k] = x[k] < y[k] ? x[k] : y[k];
    return x;
}
static inline vf vmax(vf x, vf y)
{
    for (int k = 0; k < LANES; k++) x[k] = x[k] > y[k] ? x[k] : y[k];
    return x;
}
static inline vf clip(vf x, float lo, float hi) { return vmin(vmax(x, splat(lo)), splat(hi)); }
/* value where mask, else 0: comparing vectors gives lanes of all ones or all zeros. */
static inline vf when(vi mask, float value) { return (vf)((vi)splat(value) & mask); }

/* Counter RNG: lowbias32, a 32-bit hash, of the word's number. The two halves of a word are two
 * draws in [0, 65536). Its last line, x ^= x >> 16, leaves the high half as it is. */
static inline vu scramble(vu x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    return (x ^ x >> 15) * 0x846ca68bu;
}
static inline void draw_pair(vu number, vf *low, vf *high)
{
    vu x = scramble(number), top = x >> 16;
    *low = __builtin_convertvector((vi)((x ^ top) & 0xffff), vf);
    *high = __builtin_convertvector((vi)top, vf);
}
static inline vi draw_action(vu number) { return (vi)((scramble(number) >> 16) * 6 >> 16); }

typedef struct {
    vf align, drift, energy, fatigue, focus, nat_fatigue, nat_drift, nat_energy;
} Draws;
static inline Draws draw(vu number) /* from random words number, ... number + 3 */
{
    Draws u;
    draw_pair(number, &u.align, &u.drift);
    draw_pair(number + 1, &u.energy, &u.fatigue);
    draw_pair(number + 2, &u.focus, &u.nat_fatigue);
    draw_pair(number + 3, &u.nat_drift, &u.nat_energy);
    return u;
}

/* The action table, transposed: one vector holds one bound of one axis for all actions. */
enum { ALIGN, DRIFT, ENERGY, FATIGUE, FOCUS, AXES };
static const float BOUNDS[AXES][6][2] = {
    {{.08f, .18f}, {.10f, .20f}, {-.04f, -.01f}, {.05f, .10f}, {.03f, .08f}, {-.07f, -.03f}},
    {{0, 0}, {-.15f, -.08f}, {.02f, .06f}, {-.08f, -.04f}, {-.05f, -.02f}, {.05f, .10f}},
    {{-.12f, -.05f}, {-.15f, -.08f}, {.10f, .20f}, {-.05f, -.02f}, {.02f, .05f}, {.01f, .03f}},
    {{.05f, .12f}, {.06f, .10f}, {0, 0}, {0, 0}, {-.07f, -.03f}, {-.03f, -.01f}},
    {{.02f, .08f}, {.05f, .10f}, {.05f, .10f}, {.03f, .07f}, {0, 0}, {-.06f, -.03f}}};
static const float UNIT = 1.f / 65536;
static vf LOW[AXES], SPAN[AXES];
static void fill_tables(void)
{
    for (int x = 0; x < AXES; x++)
        for (int a = 0; a < 6; a++) {
            LOW[x][a] = BOUNDS[x][a][0] + (x == DRIFT || x == FATIGUE ? .01f : 0); /* natural */
            SPAN[x][a] = (BOUNDS[x][a][1] - BOUNDS[x][a][0]) * UNIT;
        }
}
static inline vf effect(int axis, vi action, vf draw)
{
    return __builtin_shuffle(LOW[axis], action) + __builtin_shuffle(SPAN[axis], action) * draw;
}

typedef struct { vf align, drift, energy, fatigue, focus; } State;
typedef struct { /* sums over steps; the first four of value - .5, value at the start */
    vf align, drift, fatigue, energy, energy2, max_fatigue, reward, ret;
    vi cascade; /* steps in which it struck */
} Record;

/* The change of a step before day phase and cascade. */
static inline State change(vi action, Draws u)
{
    vf align = effect(ALIGN, action, u.align), energy = effect(ENERGY, action, u.energy);
    vf drift = effect(DRIFT, action, u.drift) + when(action == 0, -.9f) * align;
    vf fatigue = effect(FATIGUE, action, u.fatigue) + when(action == 2, -1.1f) * energy;
    return (State){align, drift + .01f * UNIT * u.nat_drift,
                   energy + (.02f * UNIT * u.nat_energy - .03f),
                   fatigue + .02f * UNIT * u.nat_fatigue, effect(FOCUS, action, u.focus)};
}
/* The state after step number `step`, counted from 1; *tired: where the cascade struck. */
static inline State move(State s, State change, int step, vi *tired)
{
    int phase = step * 5 / STEPS; /* 0: morning; 3 on: late afternoon, evening */
    vf fatigue = s.fatigue + change.fatigue + (phase >= 3 ? .02f : 0);
    vf focus = s.focus + change.focus + (phase == 0 ? .02f : phase >= 3 ? -.02f : 0);
    *tired = fatigue > .85f;
    return (State){clip(s.align + change.align - when(*tired, .03f), 0, 1),
                   clip(s.drift + change.drift + when(*tired, .03f), 0, 1),
                   clip(s.energy + change.energy, 0, 1), clip(fatigue, 0, 1),
                   clip(focus - when(*tired, .05f), 0, 1)};
}
static inline vf reward(State s, State n)
{
    vf r = .4f * (n.align - s.align) - .05f - .3f * (n.drift - s.drift)
         - .2f * vmax(n.fatigue - s.fatigue, splat(0));
    r += when((n.energy >= .4f) & (n.energy <= .7f), .15f); /* .1 in the band, -.05 out of it */
    r += when((n.align > .7f) & (n.drift < .3f), .1f);
    r += when((n.fatigue < .4f) & (n.energy > .5f), .05f);
    r -= when(n.fatigue > .9f, .15f) + when(n.drift > .8f, .1f);
    return clip(r, -1, 1);
}
static inline Record record(Record r, State n, vi tired, vf reward)
{
    vf e = n.energy - .5f;
    return (Record){r.align + (n.align - .5f), r.drift + (n.drift - .5f),
                    r.fatigue + (n.fatigue - .5f), r.energy + e, r.energy2 + e * e,
                    vmax(r.max_fatigue, n.fatigue), r.reward + reward, r.ret + reward,
                    r.cascade - tired};
}
static inline vf grade(Record r, State s, const float weights[9])
{
    const float n = 1.f / (STEPS + 1); /* means are over states, the start included */
    vf variance = r.energy2 * n - (r.energy * n) * (r.energy * n);
    vf components[9] = {vmin(s.align / .7f, splat(1)), vmin((1 - s.drift) / .7f, splat(1)),
                        .5f + r.align * n, .5f - r.fatigue * n, 1 - s.fatigue, .5f - r.drift * n,
                        vmax(1 - 4 * variance, splat(0)), 1 - r.max_fatigue,
                        clip((r.reward * (1.f / STEPS) + 1) / 2, 0, 1)};
    vf total = splat(0);
    for (int i = 0; i < 9; i++) total += weights[i] * components[i];
    return clip(total, .01f, .99f);
}

static inline void start(State *s, Record *r)
{
    vf half = splat(.5f), zero = splat(0), ret = zero;
    __asm__("" : "+m"(ret)); /* a 0 unknown to gcc, or it would make one of return and reward */
    *s = (State){half, half, half, half, half};
    *r = (Record){zero, zero, zero, zero, zero, half, zero, ret, {0}};
}
/* GROUP * LANES whole episodes; first: number of their first random word. */
static inline void episodes(uint32_t first, const float weights[9], float *grades, float *returns,
                            int32_t *cascades)
{
    vu number[GROUP];
    State s[GROUP], next[GROUP];
    Record rec[GROUP];
    vi tired[GROUP];
    EACH(g) for (int k = 0; k < LANES; k++) number[g][k] = first + (g * LANES + k) * STEPS * WORDS;
    EACH(g) start(&s[g], &rec[g]);
    for (int step = 1; step <= STEPS; step++) {
        EACH(g) next[g] = move(s[g], change(draw_action(number[g] + 4), draw(number[g])), step,
                               &tired[g]);
        EACH(g) rec[g] = record(rec[g], next[g], tired[g], reward(s[g], next[g]));
        EACH(g) s[g] = next[g], number[g] += WORDS;
    }
    EACH(g) {
        vf score = grade(rec[g], s[g], weights);
        memcpy(grades + g * LANES, &score, sizeof score);
        memcpy(returns + g * LANES, &rec[g].ret, sizeof rec[g].ret);
        memcpy(cascades + g * LANES, &rec[g].cascade, sizeof rec[g].cascade);
    }
}

/* Plays `batches` batches of num_envs (a multiple of 32) episodes, one after the other, each
 * with fresh draws, and leaves the last one's grades, returns and cascade counts, [num_envs]
 * each. first: number of the first random word. A core plays the same share of every batch, so
 * that no batch waits for the one before. */
void play(int num_envs, int batches, uint32_t first, const float weights[9], float *grades,
          float *returns, int32_t *cascades)
{
    fill_tables();
#pragma omp parallel
    for (int b = 0; b < batches; b++) {
        uint32_t from = first + (uint32_t)b * num_envs * STEPS * WORDS;
#pragma omp for schedule(static) nowait
        for (int i = 0; i < num_envs; i += GROUP * LANES)
            episodes(from + (uint32_t)i * STEPS * WORDS, weights, grades + i, returns + i,
                     cascades + i);
    }
}
