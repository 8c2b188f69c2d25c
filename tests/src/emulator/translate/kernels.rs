//! What the launches of a program have to know about its kernels' signatures.

use std::collections::BTreeMap;

use super::qualifiers::Qualifiers;
use super::stream::Stream;

/// Signatures of kernels, by their unqualified names.
#[derive(Default)]
pub struct Kernels(BTreeMap<String, Vec<Signature>>);

/// A declaration of a kernel.
#[derive(Clone, PartialEq, Eq)]
struct Signature {
    /// For a template: how many arguments it needs at least.
    template_arguments: Option<usize>,
    /// Parameters without a default value.
    required: usize,
    /// All parameters.
    parameters: usize,
    /// The text of the parameter list, if there is a body behind it.
    defined: Option<String>,
    /// Where the braces around it begin, and in which file.
    around: (usize, Option<usize>),
}

/// How a launch has to name its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// By its address: arguments are converted to the parameters' types.
    Address,
    /// By a call: the compiler finds the template arguments, the overload, the default arguments.
    Call,
}

impl Kernels {
    /// Adds those that a file declares. `file` is any number that tells files apart.
    pub fn add(&mut self, file: usize, stream: &Stream<'_>, qualifiers: &Qualifiers) {
        let mut open = Vec::new();
        for at in 0..stream.len() {
            match stream.word(at) {
                "{" => open.push(at),
                "}" => {
                    open.pop();
                }
                word if qualifiers.means(word, "__global__") => {
                    if let Some((name, mut signature)) = signature(stream, at) {
                        signature.around = (file, open.last().copied());
                        self.0.entry(name).or_default().push(signature);
                    }
                }
                _ => {}
            }
        }
    }

    /// How a launch names the kernel `name`, with so many explicit template arguments and arguments, where those can be
    /// counted.
    pub fn form(&self, name: &str, template_arguments: usize, arguments: Option<usize>, braced: bool) -> Form {
        let signatures = self.0.get(name).map_or(&[][..], Vec::as_slice);
        // A braced argument has no type of its own.
        if signatures.is_empty() || braced {
            return Form::Address;
        }
        let overloaded = signatures.iter().enumerate().any(|(at, one)| {
            let rest = &signatures[at + 1..];
            let differs = |other: &Signature| {
                one.around == other.around
                    && one.defined.is_some()
                    && other.defined.is_some()
                    && one.defined != other.defined
            };
            rest.iter().any(differs)
        });
        let deduced = signatures
            .iter()
            .any(|one| one.template_arguments.is_some_and(|needed| needed > template_arguments));
        let omitted = arguments.is_some_and(|given| {
            let leaves_out = |one: &Signature| one.required <= given && given < one.parameters;
            signatures.iter().any(leaves_out)
        });
        if overloaded || deduced || omitted {
            Form::Call
        } else {
            Form::Address
        }
    }
}

fn signature(stream: &Stream<'_>, at: usize) -> Option<(String, Signature)> {
    let (_, template) = stream.declaration_start(at);
    let mut name = at + 1;
    let open = loop {
        match stream.word(name) {
            _ if stream.attribute(name) => name = stream.partner(name + 1)?,
            "(" => break name,
            "<" => {
                let close = stream.angles(name)?;
                if stream.word(close + 1) == "(" {
                    return None; // a specialisation: its template counts
                }
                name = close;
            }
            "" | ";" | "{" | "}" | ")" => return None,
            _ => {}
        }
        name += 1;
    };
    if !stream.is_word(open - 1) {
        return None;
    }
    let close = stream.partner(open)?;
    let parameters = stream.split(open + 1..close);
    let has_default = |range: &std::ops::Range<usize>| range.clone().any(|at| stream.word(at) == "=");
    let is_void = close == open + 2 && stream.word(open + 1) == "void";
    let count = if is_void { 0 } else { parameters.len() };
    let pack = parameters.last().is_some_and(|last| is_pack(stream, last.clone()));
    let template_arguments = template.map(|list| {
        let list = stream.split(list.start + 1..list.end - 1);
        let optional = |one: &&std::ops::Range<usize>| !has_default(one) && !is_pack(stream, (*one).clone());
        list.iter().filter(optional).count()
    });
    let signature = Signature {
        template_arguments: template_arguments.map(|needed| if pack { usize::MAX } else { needed }),
        required: count - parameters.iter().filter(|one| has_default(one)).count().min(count),
        parameters: count,
        defined: (stream.word(close + 1) == "{").then(|| stream.join(open..close, |_| true)),
        around: (0, None),
    };
    Some((stream.word(open - 1).to_owned(), signature))
}

/// Whether `...` is among the tokens.
fn is_pack(stream: &Stream<'_>, mut range: std::ops::Range<usize>) -> bool {
    range.any(|at| (at..at + 3).all(|at| stream.word(at) == "."))
}
