//! Large files, long lines, and bytes that aren't text.

use super::{CHILD, Files, HOST, Hostile, one, parent, times};

/// The projects of this file.
pub fn all() -> Vec<Hostile> {
    let hostile = |name, about, make| Hostile { name, about, make };
    vec![
        hostile("line-5mb-code", "A line of 5 MB of statements.", |d| {
            one(format!("{CHILD}{}", parent(&" i += n;".repeat(625_000 / d))))
        }),
        hostile("line-5mb-string", "A string of 5 MB.", |d| {
            one(format!(
                "const char *s = \"{}\";\n{CHILD}{}",
                "a".repeat(5_000_000 / d),
                parent("")
            ))
        }),
        hostile("line-5mb-name", "A name of 5 MB.", |d| {
            one(format!("int {};\n{CHILD}{}", "a".repeat(5_000_000 / d), parent("")))
        }),
        hostile("file-20mb-kernels", "20 MB of kernels that launch each other.", |d| {
            kernels(20_000_000 / d)
        }),
        hostile("file-20mb-table", "20 MB of a table of numbers.", |d| {
            let row = times(16, |k| format!("0x{:02x}, ", k * 7)) + "\n";
            one(format!(
                "const unsigned char table[] = {{\n{}}};\n{CHILD}{}",
                row.repeat(20_000_000 / d / row.len()),
                parent("")
            ))
        }),
        hostile("file-20mb-comments", "20 MB of comments.", |d| {
            let line = "// The quick brown fox jumps over the lazy dog.\n";
            one(format!(
                "{}{CHILD}{}",
                line.repeat(20_000_000 / d / line.len()),
                parent("")
            ))
        }),
        hostile("file-20mb-newlines", "20 MB of empty lines.", |d| {
            one(format!("{}{CHILD}{}", "\n".repeat(20_000_000 / d), parent("")))
        }),
        hostile(
            "bytes-not-utf8",
            "Bytes that are not UTF-8 between and within tokens.",
            |d| {
                let mut text = CHILD.as_bytes().to_vec();
                for k in 0..100_000 / d {
                    text.extend_from_slice(&[b'i', b' ', 0x80 | k as u8, 0xff, b';', b'\n']);
                }
                text.extend_from_slice(parent("").as_bytes());
                one(text)
            },
        ),
        hostile("bytes-nul", "NUL bytes between and within tokens.", |d| {
            one([
                CHILD.as_bytes(),
                &b"in\0t\0 \0x;".repeat(100_000 / d),
                parent("").as_bytes(),
            ]
            .concat())
        }),
        hostile("bytes-random", "2 MB of random bytes between two kernels.", |d| {
            one([CHILD.as_bytes(), &random(2_000_000 / d), parent("").as_bytes()].concat())
        }),
        hostile("bytes-random-tokens", "1 MB of random tokens in a kernel.", |d| {
            one(random_tokens(1_000_000 / d))
        }),
        hostile("bytes-quotes", "500,000 quotation marks.", |d| {
            one(format!("{CHILD}{}{}", "\"'".repeat(250_000 / d), parent("")))
        }),
        hostile("bytes-raw-strings", "100,000 raw strings that are never closed.", |d| {
            one(format!("{CHILD}{}{}", "R\"x(".repeat(100_000 / d), parent("")))
        }),
        hostile(
            "bytes-carriage-returns",
            "Lines that end with carriage returns alone, 200,000 times.",
            |d| one(format!("{CHILD}{}{}", "int x;\r".repeat(200_000 / d), parent(""))),
        ),
    ]
}

fn kernels(bytes: usize) -> Files {
    let piece = |k: usize| {
        format!(
            r#"__global__ void c{k}(int *out, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = {k};
}}
__global__ void p{k}(int *out, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c{k}<<<(n + 31) / 32, 32>>>(out + i, n);
}}
"#
        )
    };
    let count = bytes / piece(10_000).len();
    one(format!(
        "{CHILD}{}{}",
        times(count, piece),
        parent("").replace(HOST, "")
    ))
}

/// The next of a series of numbers that look random.
fn next(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn random(bytes: usize) -> Vec<u8> {
    let mut state = 18;
    (0..bytes).map(|_| next(&mut state) as u8).collect()
}

fn random_tokens(bytes: usize) -> String {
    const TOKENS: [&str; 48] = [
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "<<<",
        ">>>",
        "<",
        ">",
        ";",
        ";",
        ",",
        "if",
        "else",
        "for",
        "while",
        "do",
        "switch",
        "case",
        "goto",
        "return",
        "child",
        "out",
        "i",
        "n",
        "=",
        "+",
        "*",
        "&",
        "?",
        ":",
        "::",
        "int",
        "float",
        "struct",
        "template",
        "typename",
        "auto",
        "__global__",
        "__device__",
        "__shared__",
        "#if A\n",
        "\n#endif\n",
        "\n#else\n",
        "1",
        "\"s\"",
        "//c\n",
    ];
    let mut state = 48;
    let mut text = format!("{CHILD}__global__ void random(int *out, int i, int n) {{\n");
    while text.len() < bytes {
        text.push_str(TOKENS[next(&mut state) as usize % TOKENS.len()]);
        text.push(' ');
    }
    text + "\n}\n" + &parent("")
}
