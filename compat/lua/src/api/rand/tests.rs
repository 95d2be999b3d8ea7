//! Random numbers as scripts see them.

use std::collections::HashSet;
use std::sync::Arc;

use super::*;
use crate::testing::{RecordingHost, failure, printed, state};

/// What `text` prints where traces are compiled, and the same where they are not.
fn printed_twice(text: &str) -> [String; 2] {
    [false, true].map(|interpreted| {
        let host = Arc::new(RecordingHost { interpreted, ..RecordingHost::default() });
        state(text, &host);
        host.printed.lock().unwrap().clone()
    })
}

const DRAWS: u32 = 200_000;

/// Chi-square of the numbers that `expression` gives in Lua against `probability` of each from `low` to `high`; the bound
/// is the 99.99 % point by Wilson and Hilferty (1931). Numbers expected fewer than 10 times share a cell.
fn assert_fits(expression: &str, low: u32, high: u32, probability: impl Fn(u32) -> f64) {
    let text = format!(
        "local observed = {{}} for i = {low}, {high} do observed[i] = 0 end
         for _ = 1, {DRAWS} do local n = {expression} observed[n] = observed[n] + 1 end
         for i = {low}, {high} do print(observed[i]) end"
    );
    for observed in printed_twice(&text) {
        let observed = observed.lines().map(|line| line.parse().unwrap()).collect::<Vec<f64>>();
        assert_eq!(observed.iter().sum::<f64>(), f64::from(DRAWS));
        assert_close(expression, low, &observed, &probability);
    }
}

fn assert_close(expression: &str, low: u32, observed: &[f64], probability: impl Fn(u32) -> f64) {
    let (mut chi_square, mut cells, mut expected, mut counted) = (0.0, 0.0, 0.0, 0.0);
    for (number, observed) in (low..).zip(observed) {
        expected += probability(number) * f64::from(DRAWS);
        counted += observed;
        if expected >= 10.0 {
            chi_square += (counted - expected) * (counted - expected) / expected;
            cells += 1.0;
            (expected, counted) = (0.0, 0.0);
        }
    }
    let freedom: f64 = cells - 1.0;
    let ninth = 2.0 / (9.0 * freedom);
    let bound = freedom * (1.0 - ninth + 3.719 * ninth.sqrt()).powi(3);
    assert!(chi_square < bound, "{expression}: chi-square {chi_square:.1}, bound {bound:.1}");
}

/// Distribution function of the mean of `n` uniform numbers (Irwin and Hall, 1927).
fn bates(x: f64, n: u32) -> f64 {
    let (sum, mut binomial, mut total) = (x.clamp(0.0, 1.0) * f64::from(n), 1.0, 0.0);
    let factorial: f64 = (1..=n).map(f64::from).product();
    for k in 0..=n {
        if f64::from(k) <= sum {
            total += (-1f64).powi(k as i32) * binomial * (sum - f64::from(k)).powi(n as i32) / factorial;
            binomial *= f64::from(n - k) / f64::from(k + 1);
        }
    }
    total.clamp(0.0, 1.0)
}

#[test]
fn distributions_have_the_expected_probabilities() {
    for call in ["sysbench.rand.uniform(3, 52)", "sb_rand_uniform(3, 52)", "ffi.C.sb_rand_uniform(3, 52)"] {
        assert_fits(call, 3, 52, |_| 0.02);
    }
    let bell = |x: f64| bates(x, 12);
    for call in ["sysbench.rand.gaussian(1, 100)", "ffi.C.sb_rand_gaussian(1, 100)"] {
        assert_fits(call, 1, 100, |id| bell(f64::from(id) / 100.0) - bell((f64::from(id) - 1.0) / 100.0));
    }
    let power = 0.8f64.ln() / 0.2f64.ln();
    for call in ["sysbench.rand.pareto(11, 210)", "ffi.C.sb_rand_pareto(11, 210)"] {
        let below = |id: u32| (f64::from(id - 11) / 200.0).powf(power);
        assert_fits(call, 11, 210, |id| below(id + 1) - below(id));
    }
}

#[test]
fn default_distribution_is_special_with_sysbenchs_hot_range() {
    // The band is uniform from edge(0.25) to edge(1) and holds three quarters of the draws.
    let (span, band) = (999.0, 9.99);
    let edge = |unit: f64| unit * (band + 1.0) + span / 2.0 - band / 2.0;
    let below = move |id: u32| {
        let x = f64::from(id - 1);
        0.25 * bates(x / span, 12) + 0.75 * ((x - edge(0.25)) / (edge(1.0) - edge(0.25))).clamp(0.0, 1.0)
    };
    for call in ["default", "special"] {
        assert_fits(&format!("sysbench.rand.{call}(1, 1000)"), 1, 1000, |id| below(id + 1) - below(id));
    }
    assert_fits("sb_rand(1, 1000)", 1, 1000, |id| below(id + 1) - below(id));
}

#[test]
fn cached_ranges_do_not_mix() {
    let text = "for _ = 1, 1000 do
            assert(sysbench.rand.default(1, 10) <= 10) assert(sysbench.rand.default(100, 110) >= 100)
            assert(sysbench.rand.pareto(1, 10) <= 10) assert(sysbench.rand.pareto(100, 110) >= 100)
        end print('fine')";
    assert_eq!(printed(text), "fine\n");
}

#[test]
fn arguments_are_converted_as_in_c() {
    let text = "
        local uniform = sysbench.rand.uniform
        print(uniform(5, 5), uniform(5.9, 5.9), uniform(-1, -1), uniform(1, 0), uniform(4294967297, 4294967297))
        print(uniform(5LL, 5ULL), uniform(true, 1), type(uniform(0, 4294967295)))
        print(sysbench.rand.special(1, 0), sysbench.rand.gaussian(1, 0), sysbench.rand.pareto(1, 0))
        print(sysbench.rand.special(7, 7), sysbench.rand.gaussian(7, 7), sysbench.rand.pareto(7, 7))
        print(pcall(uniform)) print(pcall(uniform, '1', 5)) print(pcall(uniform, 1, {}))
        local n = uniform(5, 1) assert(n >= 5 or n <= 1)";
    let expected = "5\t5\t4294967295\t1\t1
5\t1\tnumber
1\t1\t1
7\t7\t7
false\tbad argument #1 to '?' (cannot convert 'nil' to 'unsigned int')
false\tbad argument #1 to '?' (cannot convert 'string' to 'unsigned int')
false\tbad argument #2 to '?' (cannot convert 'table' to 'unsigned int')
";
    assert_eq!(printed_twice(text), [expected, expected]);
}

#[test]
fn numbers_cover_32_bits() {
    let text = "local high, low = 0, 0
        for _ = 1, 1000 do
            if sysbench.rand.uniform(0, 4294967295) > 2147483647 then high = high + 1 else low = low + 1 end
        end print(high > 400 and low > 400)";
    assert_eq!(printed_twice(text), ["true\n"; 2]);
}

#[test]
fn string_templates_keep_other_characters() {
    let text = "
        print(#sysbench.rand.string(('#'):rep(5001)), sysbench.rand.string(''), sysbench.rand.string('a-\\\\%d'))
        print(sysbench.rand.string('##-@@'):match('^%d%d%-%l%l$') ~= nil, sb_rand_str('x#'):match('^x%d$') ~= nil)
        print(pcall(sysbench.rand.string)) print(pcall(sysbench.rand.string, 12))";
    let expected = "5001\t\ta-\\%d
true\ttrue
false\tattempt to get length of local 'fmt' (a nil value)
false\tattempt to get length of local 'fmt' (a number value)
";
    assert_eq!(printed(text), expected);
}

#[test]
fn digits_and_letters_are_uniform_and_neighbours_independent() {
    // 0.1 % points of chi-square: 27.9 for 9 degrees of freedom, 52.6 for 25, 148.2 for 99.
    let mut rng = Rng::new(3, &[]);
    let mut text = Vec::new();
    append(&mut rng, &b"#".repeat(200_000), &mut text);
    let (mut digits, mut pairs) = ([0u32; 10], [0u32; 100]);
    for pair in text.chunks(2) {
        let (one, two) = (usize::from(pair[0] - b'0'), usize::from(pair[1] - b'0'));
        digits[one] += 1;
        digits[two] += 1;
        pairs[10 * one + two] += 1;
    }
    let chi_square = |cells: &[u32], expected: f64| -> f64 {
        cells.iter().map(|&observed| (f64::from(observed) - expected).powi(2) / expected).sum()
    };
    assert!(chi_square(&digits, 20_000.0) < 27.9, "{digits:?}");
    assert!(chi_square(&pairs, 1_000.0) < 148.2, "{pairs:?}");
    text.clear();
    append(&mut rng, &b"@".repeat(260_000), &mut text);
    let mut letters = [0u32; 26];
    text.iter().for_each(|letter| letters[usize::from(letter - b'a')] += 1);
    assert!(chi_square(&letters, 10_000.0) < 52.6, "{letters:?}");
}

#[test]
fn unique_numbers_are_unique_across_states() {
    let draw = || {
        let observed =
            printed("for i = 1, 20000 do print(sysbench.rand.unique()) end print(ffi.C.sb_rand_unique())");
        observed.lines().map(|line| line.parse().unwrap()).collect::<Vec<u32>>()
    };
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(draw)).collect();
    let numbers: Vec<u32> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(numbers.len(), 80_004);
    assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), 80_004);
    // They are scattered: half of them lie in the upper half.
    let upper = numbers.iter().filter(|&&number| number > u32::MAX / 2).count();
    assert!((38_000..42_000).contains(&upper), "{upper}");
}

#[test]
fn scattering_is_a_permutation() {
    // One image for each of the ends and of stretches all over the range.
    let numbers =
        (0..3000u32).flat_map(|i| [i, u32::MAX - i, i.wrapping_mul(1_431_655), 2_147_483_645u32 + i]);
    let numbers: HashSet<u32> = numbers.collect();
    assert_eq!(numbers.iter().map(|&number| scatter(number)).collect::<HashSet<_>>().len(), numbers.len());
}

#[test]
fn functions_of_0_5_and_64_bit_numbers() {
    let text = "
        print(type(sb_rnd()), sb_rnd() ~= sb_rnd(), sb_rnd() <= 4294967295)
        local n = sb_rand_uniq(1, 2147483647) print(n >= 1 and n <= 2147483647, type(sb_rand_uniq()))
        print(type(sysbench.rand.uniform_uint64()), ffi.istype('uint64_t', sysbench.rand.uniform_uint64()))
        local high = 0 for _ = 1, 1000 do if sysbench.rand.uniform_uint64() > 0x7fffffffffffffffULL then high = high + 1 end end
        print(high > 400 and high < 600)
        local sum = 0 for _ = 1, 10000 do local d = sysbench.rand.uniform_double() assert(d >= 0 and d < 1) sum = sum + d end
        print(math.abs(sum / 10000 - 0.5) < 0.02)";
    assert_eq!(printed(text), "number\ttrue\ttrue\ntrue\tnumber\ncdata\ttrue\ntrue\ntrue\n");
    assert!(format!("{:?}", failure("sb_rand_uniq(5, 1)")).contains("there is no number from 5 to 1"));
}

#[test]
fn random_functions_differ_by_version() {
    let names = "local names = {} for name in pairs(sysbench.rand) do names[#names + 1] = name end
        table.sort(names) print(table.concat(names, ' '), sb_rand ~= nil)";
    assert_eq!(
        printed(names),
        "default gaussian pareto special string uniform uniform_double uniform_uint64 unique\ttrue\n"
    );
    let host = Arc::new(RecordingHost { compat: Compat::V1_1, ..RecordingHost::default() });
    let text = format!(
        "{names} assert(sysbench.rand.zipfian(3, 3) == 3)
         for _ = 1, 1000 do local s = sysbench.rand.varstring(2, 5) assert(#s >= 2 and #s <= 5 and s:match('^[0-z]+$')) end
         print(pcall(sysbench.rand.varstring, 2, 1), pcall(sysbench.rand.varstring, 0, 0))"
    );
    state(&text, &host);
    assert_eq!(
        *host.printed.lock().unwrap(),
        "default gaussian pareto string uniform uniform_double uniform_uint64 unique varstring zipfian\tfalse\n\
         false\tfalse\ta string cannot have 0 to 0 characters\n"
    );
}
