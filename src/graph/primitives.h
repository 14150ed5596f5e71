/* primitives.h - the functions that formulas of elementwise.def and reductions.def may call.
 *
 * OF(of_f32, of_f64): what computes it for each type of real numbers; who includes this file
 * defines OF, to take one of them, and R(number), a constant of that type. Of f32 they are the
 * functions of the device (mur_real.h, mur_real_wide.h), so that ref and generated C give the same
 * bits; of f64 those of base/real.h and graph/formula.c. No header guard: macros named like libm's
 * functions are for the file that asks for them, below all other includes.
 */
#define abs(x) OF(mur_abs(x), fabs(x))
#define acos(x) OF(mur_real_acos(x), acos_of(x))
#define acosh(x) OF(mur_real_acosh(x), acosh_of(x))
#define asin(x) OF(mur_real_asin(x), asin_of(x))
#define asinh(x) OF(mur_real_asinh(x), asinh_of(x))
#define atan(x) OF(mur_real_atan(x), muc_atan(x))
#define atanh(x) OF(mur_real_atanh(x), atanh_of(x))
#define ceil(x) OF(mur_ceil(x), ceil(x))
#define cos(x) OF(mur_real_cos(x), cos_of(x))
#define cosh(x) OF(mur_real_cosh(x), cosh_of(x))
#define erf(x) OF(mur_real_erf(x), muc_erf(x))
#define exp(x) OF(mur_real_exp_nearest(x), muc_exp(x))
#define exp_in_sum(x) OF(mur_real_exp(x), muc_exp(x))
#define expm1(x) OF(mur_real_expm1(x), muc_expm1(x))
#define floor(x) OF(mur_floor(x), floor(x))
#define fmod(x, y) OF(mur_fmod(x, y), fmod(x, y))
#define hard_sigmoid(x, alpha, beta) \
    OF(mur_real_hard_sigmoid(x, alpha, beta), hard_sigmoid_of(x, alpha, beta))
#define infinity OF(mur_float_of(MUR_INFINITY_BITS), INFINITY)
#define log(x) OF(mur_real_log(x), muc_log_of_any(x))
#define max(x, y) OF(mur_max(x, y), muc_max(x, y))
#define min(x, y) OF(mur_min(x, y), muc_min(x, y))
#define mod(x, y) OF(mur_real_mod(x, y), mod_of(x, y))
#define round(x) OF(mur_round_even(x), nearbyint(x))
#define sigmoid(x) OF(mur_real_sigmoid(x), sigmoid_of(x))
#define silu(x, alpha) OF(mur_real_silu(x, alpha), silu_of(x, alpha))
#define sin(x) OF(mur_real_sin(x), sin_of(x))
#define sinh(x) OF(mur_real_sinh(x), sinh_of(x))
#define sixth(x) OF((x) * (1 / 6.0f), (x) / 6)
#define softplus(x) OF(mur_real_softplus(x), softplus_of(x))
#define sqrt(x) OF(mur_sqrt(x), sqrt(x))
#define tan(x) OF(mur_real_tan(x), tan_of(x))
#define tanh(x) OF(mur_real_tanh(x), muc_tanh(x))
