//! What a class does when its objects are made, copied and converted to, as far as its definition says.

use tree_sitter::Node;

use crate::base::fields;
use crate::base::preprocess::Specifiers;
use crate::base::scan::without_comments;
use crate::hir::library::known;

/// What the constructors of a class do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, salsa::SalsaValue)]
pub enum Constructors {
    /// There are none but those that the compiler writes: the fields are set one by one.
    #[default]
    None,
    /// Each sets fields to what its arguments decide, and does nothing else.
    Plain,
    /// One does something else, or isn't understood.
    Other,
}

/// What the special member functions of a class do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialMembers {
    /// Its constructors.
    pub constructors: Constructors,
    /// Copying an object, or converting something to one, may run code that does more than compute it.
    pub nontrivial: bool,
    /// What runs unasked and does more than compute or set fields: `a constructor`, `the destructor`, `a conversion`.
    pub hidden: Option<&'static str>,
    /// All of that is for the host alone: no code of the device can run it.
    pub hidden_from_device: bool,
}

impl SpecialMembers {
    /// Notes what runs unasked. `host`: no code of the device can run it.
    fn hide(&mut self, what: &'static str, host: bool) {
        self.hidden_from_device = host && (self.hidden.is_none() || self.hidden_from_device);
        self.hidden = Some(what);
    }
}

/// What the members of the class `class` with these `fields` do, which are the children of its body. `arrays` are those of the fields
/// that are arrays. `macros` are those that masking has blanked in the body, as they stand for specifiers of functions.
pub fn special_members(
    body: Node<'_>,
    class: &str,
    fields: &[&str],
    arrays: &[&str],
    source: &str,
    macros: &[Specifiers],
) -> SpecialMembers {
    let reader = Reader {
        class,
        fields,
        arrays,
        source,
        macros,
    };
    let mut found = SpecialMembers::default();
    let mut cursor = body.walk();
    for member in body.named_children(&mut cursor) {
        reader.member(member, &mut found);
    }
    found
}

/// `operator dim3() const { … }`, also behind `template <…>`. The words decide, and not the tree: behind two words in front of it that the
/// parser doesn't know, `__host__ __device__`, a conversion looks like a function that is called `int`.
pub(super) fn is_conversion(member: Node<'_>, source: &str) -> bool {
    if member.kind() == "template_declaration" {
        let mut cursor = member.walk();
        return member
            .named_children(&mut cursor)
            .any(|inner| is_conversion(inner, source));
    }
    let body = member.child_by_field_id(fields::BODY.id());
    let end = body.map_or(member.end_byte(), |body| body.start_byte());
    let head = without_comments(source.get(member.start_byte()..end).unwrap_or(""));
    let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
    head.match_indices("operator").any(|(at, operator)| {
        let (before, behind) = (head.get(..at), head.get(at + operator.len()..));
        let (Some(before), Some(behind)) = (before, behind) else {
            return false;
        };
        // `new` and `delete` are operators, too; another one is no word.
        let ty = behind.trim_start();
        let name = ty.split(|c: char| !is_word(c)).next().unwrap_or("");
        !before.ends_with(is_word)
            && !behind.starts_with(is_word)
            && (ty.starts_with("::") || !name.is_empty() && !matches!(name, "new" | "delete" | "co_await"))
    })
}

struct Reader<'a> {
    class: &'a str,
    fields: &'a [&'a str],
    arrays: &'a [&'a str],
    source: &'a str,
    macros: &'a [Specifiers],
}

impl Reader<'_> {
    fn text(&self, node: Node<'_>) -> &str {
        self.source.get(node.byte_range()).unwrap_or("")
    }

    fn member(&self, node: Node<'_>, found: &mut SpecialMembers) {
        match node.kind() {
            _ if self.is_made_by_a_macro(node) => {
                found.nontrivial = true;
                found.constructors = Constructors::Other;
                found.hide("what a macro makes", false);
            }
            "field_declaration" | "declaration" | "function_definition" => self.function(node, false, found),
            "template_declaration" => {
                let mut cursor = node.walk();
                for inner in node.named_children(&mut cursor) {
                    if matches!(
                        inner.kind(),
                        "field_declaration" | "declaration" | "function_definition"
                    ) {
                        self.function(inner, true, found);
                    }
                }
            }
            "comment" | "access_specifier" | "alias_declaration" | "type_definition" | "friend_declaration" => {}
            kind if kind.starts_with("preproc_") => {
                found.nontrivial = true;
                if kind == "preproc_include" {
                    found.constructors = Constructors::Other;
                    found.hide("what is included in it", false);
                }
                let mut cursor = node.walk();
                node.named_children(&mut cursor)
                    .for_each(|inner| self.member(inner, found));
            }
            _ => found.nontrivial = true,
        }
    }

    /// `CHECKED(S)`, `CHECKED(S);`, `CHECKED;`, which look like a field in brackets, a function without a type, a field without a name:
    /// any member may come of it, also those that run unasked.
    fn is_made_by_a_macro(&self, node: Node<'_>) -> bool {
        let ty = node.child_by_field_id(fields::TYPE.id());
        let declarator = node.child_by_field_id(fields::DECLARATOR.id());
        match node.kind() {
            "ERROR" => true,
            "field_declaration" => {
                ty.is_some_and(|ty| ty.kind() == "type_identifier")
                    && declarator.is_none_or(|d| d.kind() == "parenthesized_declarator")
            }
            "declaration" => {
                let name = declarator
                    .filter(|d| ty.is_none() && d.kind() == "function_declarator")
                    .and_then(|d| d.child_by_field_id(fields::DECLARATOR.id()));
                name.is_some_and(|name| name.kind() == "identifier" && self.text(name) != self.class)
            }
            _ => false,
        }
    }

    /// A member function, declared or defined; or a field.
    fn function(&self, node: Node<'_>, template: bool, found: &mut SpecialMembers) {
        let body = node.child_by_field_id(fields::BODY.id());
        let head = self
            .source
            .get(node.start_byte()..body.map_or(node.end_byte(), |b| b.start_byte()));
        found.nontrivial |= crate::base::words::words(head.unwrap_or("")).any(|word| word == "virtual");
        let mut declarator = node.child_by_field_id(fields::DECLARATOR.id());
        if is_conversion(node, self.source) {
            if !body.is_some_and(|body| self.returns(body)) {
                found.hide("a conversion", self.is_of_host(node, body));
            }
            return;
        }
        let mut cursor = node.walk();
        let mut initial = node.children_by_field_name("default_value", &mut cursor);
        if initial.any(|value| !self.computes(value, &[])) {
            found.hide("an initialiser", false);
        }
        while let Some(inner) = declarator.filter(|d| d.kind() != "function_declarator") {
            // `T& operator=(const T&)` holds the function's declarator without a field name.
            let mut cursor = inner.walk();
            declarator = inner.child_by_field_id(fields::DECLARATOR.id()).or_else(|| {
                let mut all = inner.named_children(&mut cursor);
                all.find(|c| c.kind() == "function_declarator")
            });
        }
        let Some(declarator) = declarator else { return };
        let name = declarator.child_by_field_id(fields::DECLARATOR.id());
        let mut cursor = node.walk();
        let defaulted = node.children(&mut cursor).any(|c| c.kind() == "default_method_clause");
        let mut cursor = node.walk();
        let deleted = node.children(&mut cursor).any(|c| c.kind() == "delete_method_clause");
        match name.map(|n| n.kind()) {
            _ if defaulted && !template => {}
            Some("destructor_name") => {
                found.nontrivial = true;
                if !deleted && !body.is_some_and(|body| self.text(body).trim_matches(['{', '}']).trim().is_empty()) {
                    found.hide("the destructor", self.is_of_host(node, body));
                }
            }
            Some("operator_name") => {
                let written: String = name.map_or("", |n| self.text(n)).split_whitespace().collect();
                found.nontrivial |= written == "operator=";
                let memory = ["operatornew", "operatordelete"];
                if memory.iter().any(|own| written.starts_with(own)) && !deleted {
                    found.hide("its own memory management", self.is_of_host(node, body));
                }
            }
            _ if name.is_some_and(|n| self.text(n) == self.class) => {
                let plain = !template && self.sets_fields(node, declarator);
                if !plain && !deleted {
                    found.hide("a constructor", self.is_of_host(node, body));
                }
                let constructors = if plain {
                    Constructors::Plain
                } else {
                    Constructors::Other
                };
                found.constructors = found.constructors.max(constructors);
                // One that has to be asked for by name converts nothing unasked.
                let mut cursor = node.walk();
                let explicit = node
                    .children(&mut cursor)
                    .any(|c| c.kind() == "explicit_function_specifier");
                found.nontrivial |= template || self.may_copy(declarator) || !plain && !explicit;
            }
            _ => {}
        }
    }

    /// Whether a member that is defined here is the host's alone: nothing in front of its name says otherwise, and no macro may. (Of a
    /// declaration the definition elsewhere may say it. What is `constexpr` may be for both.)
    fn is_of_host(&self, node: Node<'_>, body: Option<Node<'_>>) -> bool {
        let defined = body.is_some_and(|body| body.kind() == "compound_statement");
        // `HD` may stand for `__host__ __device__`; where it's known to, the text doesn't have it any more.
        let start = node.prev_sibling().map_or(0, |before| before.end_byte());
        let of_member = |at: usize| start <= at && at < node.end_byte();
        if self.macros.iter().any(|macros| of_member(macros.start as usize)) {
            return false;
        }
        let text = self.text(node);
        let head = text.get(..text.find(['(', '{']).unwrap_or(0)).unwrap_or("");
        let mut words = crate::base::words::words(head.split(['~', ':']).next().unwrap_or(""));
        let plain = |word: &str| matches!(word, "explicit" | "inline" | "virtual" | "operator") || word == self.class;
        defined && head.contains(|c: char| !c.is_whitespace()) && words.all(plain)
    }

    /// Whether a constructor may be the one that copies or moves: its only needed parameter is a reference to what may be the class.
    fn may_copy(&self, declarator: Node<'_>) -> bool {
        let Some(list) = declarator.child_by_field_id(fields::PARAMETERS.id()) else {
            return true;
        };
        let mut cursor = list.walk();
        let all: Vec<Node<'_>> = list
            .named_children(&mut cursor)
            .filter(|c| c.kind() != "comment")
            .collect();
        let Some(first) = all.first() else { return false };
        let understood = |p: &Node<'_>| matches!(p.kind(), "parameter_declaration" | "optional_parameter_declaration");
        if !all.iter().all(understood) {
            return true;
        }
        let needed = all.iter().filter(|p| p.kind() == "parameter_declaration").count();
        let primitive = first
            .child_by_field_id(fields::TYPE.id())
            .is_some_and(|t| t.kind() == "primitive_type");
        needed <= 1 && self.text(*first).contains('&') && !primitive
    }

    /// Whether a constructor sets fields to what its arguments decide, and does nothing else.
    fn sets_fields(&self, node: Node<'_>, declarator: Node<'_>) -> bool {
        let Some(body) = node
            .child_by_field_id(fields::BODY.id())
            .filter(|b| b.kind() == "compound_statement")
        else {
            return false;
        };
        // With an unknown word in front of it the rest is read in other ways.
        if node.child_by_field_id(fields::TYPE.id()).is_some() {
            return false;
        }
        // Where a file has a syntax error its items are read without what functions do.
        let written = self.text(body).trim_matches(['{', '}']).trim();
        if body.named_child_count() == 0 && !written.is_empty() {
            return false;
        }
        let mut parameters = Vec::new();
        if let Some(list) = declarator.child_by_field_id(fields::PARAMETERS.id()) {
            let mut cursor = list.walk();
            for parameter in list.named_children(&mut cursor) {
                let mut name = parameter.child_by_field_id(fields::DECLARATOR.id());
                while let Some(inner) = name.filter(|n| n.kind() != "identifier") {
                    let mut cursor = inner.walk();
                    name = inner.child_by_field_id(fields::DECLARATOR.id()).or_else(|| {
                        let mut all = inner.named_children(&mut cursor);
                        all.find(|c| c.kind() == "identifier")
                    });
                }
                if let Some(name) = name {
                    parameters.push(self.text(name));
                }
                let default = parameter.child_by_field_id(fields::DEFAULT_VALUE.id());
                if default.is_some_and(|value| !self.computes(value, &[])) {
                    return false;
                }
            }
        }
        let mut cursor = node.walk();
        let initialised = node
            .named_children(&mut cursor)
            .filter(|c| c.kind() == "field_initializer_list")
            .all(|list| {
                let mut cursor = list.walk();
                list.named_children(&mut cursor)
                    .all(|one| self.initialises(one, &parameters))
            });
        let mut cursor = body.walk();
        initialised
            && body
                .named_children(&mut cursor)
                .all(|stmt| self.assigns(stmt, &parameters))
    }

    /// `{ return value; }` with a value made of fields.
    fn returns(&self, body: Node<'_>) -> bool {
        let mut cursor = body.walk();
        let statements: Vec<Node<'_>> = body
            .named_children(&mut cursor)
            .filter(|s| s.kind() != "comment")
            .collect();
        match statements.as_slice() {
            [one] if one.kind() == "return_statement" => {
                one.named_child(0).is_some_and(|value| self.computes(value, &[]))
            }
            _ => false,
        }
    }

    /// `field(value)`, `field{value}`
    fn initialises(&self, node: Node<'_>, parameters: &[&str]) -> bool {
        if node.kind() == "comment" {
            return true;
        }
        let mut cursor = node.walk();
        let mut parts = node.named_children(&mut cursor);
        let field = parts
            .next()
            .is_some_and(|f| f.kind() == "field_identifier" && self.fields.contains(&self.text(f)));
        node.kind() == "field_initializer" && field && parts.all(|values| self.computes(values, parameters))
    }

    /// `field = value;`, `this->field = value;`
    fn assigns(&self, node: Node<'_>, parameters: &[&str]) -> bool {
        if node.kind() == "comment" {
            return true;
        }
        let Some(assignment) = node.named_child(0).filter(|_| node.kind() == "expression_statement") else {
            return false;
        };
        let plain = assignment.kind() == "assignment_expression"
            && assignment
                .child_by_field_id(fields::OPERATOR.id())
                .is_none_or(|o| o.kind() == "=");
        let Some(left) = assignment.child_by_field_id(fields::LEFT.id()).filter(|_| plain) else {
            return false;
        };
        let own = match left.kind() {
            // A parameter of the same name hides the field.
            "identifier" => self.fields.contains(&self.text(left)) && !parameters.contains(&self.text(left)),
            "field_expression" => self.own_field(left),
            "subscript_expression" => self.own_element(left, parameters),
            _ => false,
        };
        let value = assignment.child_by_field_id(fields::RIGHT.id());
        own && value.is_some_and(|value| self.computes(value, parameters))
    }

    /// `this->field`
    fn own_field(&self, node: Node<'_>) -> bool {
        node.child_by_field_id(fields::ARGUMENT.id())
            .is_some_and(|a| a.kind() == "this")
            && node
                .child_by_field_id(fields::FIELD.id())
                .is_some_and(|f| self.fields.contains(&self.text(f)))
    }

    /// `array[i]`, `this->array[i]`
    fn own_element(&self, node: Node<'_>, parameters: &[&str]) -> bool {
        let Some(array) = node.child_by_field_id(fields::ARGUMENT.id()) else {
            return false;
        };
        let own = match array.kind() {
            "identifier" => self.arrays.contains(&self.text(array)) && !parameters.contains(&self.text(array)),
            "field_expression" => {
                let field = array.child_by_field_id(fields::FIELD.id()).map_or("", |f| self.text(f));
                self.own_field(array) && self.arrays.contains(&field)
            }
            _ => false,
        };
        let index = node.child_by_field_id(fields::INDICES.id());
        own && index.is_some_and(|index| self.computes(index, parameters))
    }

    /// An expression that is made of parameters, fields and constants by the language's operators.
    fn computes(&self, node: Node<'_>, parameters: &[&str]) -> bool {
        let inner = || {
            let mut cursor = node.walk();
            node.named_children(&mut cursor)
                .all(|part| self.computes(part, parameters))
        };
        match node.kind() {
            "number_literal" | "string_literal" | "char_literal" | "true" | "false" | "null" | "nullptr"
            | "comment" | "primitive_type" => true,
            "identifier" => {
                let name = self.text(node);
                parameters.contains(&name) || self.fields.contains(&name)
            }
            "field_expression" => {
                // What a pointer points to may be something else later.
                let by_value = node
                    .child_by_field_id(fields::OPERATOR.id())
                    .is_some_and(|o| o.kind() == ".");
                let base = node.child_by_field_id(fields::ARGUMENT.id());
                self.own_field(node) || by_value && base.is_some_and(|base| self.computes(base, parameters))
            }
            "unary_expression" => {
                inner()
                    && node
                        .child_by_field_id(fields::OPERATOR.id())
                        .is_some_and(|o| o.kind() != "*")
            }
            "cast_expression" => {
                let ty = node.child_by_field_id(fields::TYPE.id()).map_or("", |t| self.text(t));
                let value = node.child_by_field_id(fields::VALUE.id());
                crate::base::words::words(ty).all(is_number_type)
                    && value.is_some_and(|value| self.computes(value, parameters))
            }
            // `make_float2(x, y)`, `int(x)`, `min(x, y)`
            "call_expression" => {
                let called = node
                    .child_by_field_id(fields::FUNCTION.id())
                    .map_or("", |f| self.text(f));
                let pure = is_number_type(called) || known(called).is_some_and(|l| l.is_pure());
                let arguments = node.child_by_field_id(fields::ARGUMENTS.id());
                pure && arguments.is_some_and(|arguments| self.computes(arguments, parameters))
            }
            "binary_expression"
            | "parenthesized_expression"
            | "conditional_expression"
            | "argument_list"
            | "subscript_argument_list"
            | "initializer_list" => inner(),
            "subscript_expression" => self.own_element(node, parameters),
            _ => false,
        }
    }
}

fn is_number_type(word: &str) -> bool {
    matches!(
        word,
        "char" | "short" | "int" | "long" | "unsigned" | "signed" | "float" | "double" | "bool" | "size_t"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(members: &str) -> SpecialMembers {
        let mut parser = tree_sitter::Parser::new();
        assert!(parser.set_language(&tree_sitter_cuda::LANGUAGE.into()).is_ok());
        let source = format!("struct S {{\n{members}\n}};\n");
        let tree = parser.parse(&source, None);
        let found = tree.as_ref().and_then(|tree| {
            let class = tree.root_node().named_child(0)?;
            let body = class.child_by_field_id(fields::BODY.id())?;
            Some(special_members(body, "S", &["x", "y", "v"], &["v"], &source, &[]))
        });
        found.unwrap_or_default()
    }

    #[test]
    fn constructors_that_only_set_fields() {
        let plain = SpecialMembers {
            constructors: Constructors::Plain,
            ..SpecialMembers::default()
        };
        for members in [
            "S(int a) : x(a), y{-a * 2} {}",
            "__host__ __device__ S(int x, int b = 0) { this->x = x; y = b; }",
            "explicit S(float a) : x((int)a) { /* nothing */ }",
            "S() : x(0), y(0) {}\n S(const S& other, bool half) : x(half ? other.x : other.y), y(other.y) {}",
            "S(const int& a) : x(a) {}",
            "S(int a, int b) { v[0] = a; this->v[1 + 1] = v[0] - b; }",
        ] {
            assert_eq!(of(members), plain, "{members}");
        }
        let none = SpecialMembers::default();
        for members in [
            "int x, y;",
            "S() = default;\n S(const S&) = default;\n ~S() = default;",
            "bool operator==(const S& o) const { return x == o.x; }\n int norm() const { return ~x; }\n static S make(int);",
        ] {
            assert_eq!(of(members), none, "{members}");
        }
    }

    #[test]
    fn what_may_run_code_when_it_is_copied() {
        for members in [
            "S(const S& other) : x(other.x) {}",
            "S(S&&) noexcept;",
            "S(const Self& other) : x(other.x) {}",
            "S(S& other, int a = 0) : x(a) {}",
            "template <class T> S(T&& other) : x(0) {}",
            "S& operator = (const S& o) { x = o.x; return *this; }",
            "S& operator=(const S&) = delete;",
            "~S() {}",
            "virtual ~S() = default;",
            "__device__ virtual int f();",
            "using Base::Base;",
        ] {
            assert!(of(members).nontrivial, "{members}");
        }
    }

    #[test]
    fn what_runs_unasked() {
        for (members, what) in [
            ("~S() { free(p); }", "the destructor"),
            ("~S();", "the destructor"),
            ("int x;\n CHECKED(S)", "what a macro makes"),
            ("CHECKED(S) int x;", "what a macro makes"),
            ("CHECKED(S);", "what a macro makes"),
            (
                "void* operator new(size_t n) { return malloc(n); }",
                "its own memory management",
            ),
            ("void operator delete[](void* p);", "its own memory management"),
            ("CHECKED; int x;", "what a macro makes"),
            ("int x;\n CHECKED", "what a macro makes"),
            ("virtual ~S() noexcept { n = 0; }", "the destructor"),
            ("operator int() const { return n++; }", "a conversion"),
            (
                "operator T*() { extern __shared__ int s[]; return (T*)s; }",
                "a conversion",
            ),
            ("explicit operator bool() const;", "a conversion"),
            (
                "__host__ __device__ operator int() const { return n++; }",
                "a conversion",
            ),
            (
                "__device__ __forceinline__ operator int() const { return n++; }",
                "a conversion",
            ),
            (
                "constexpr __device__ operator int() const { return n++; }",
                "a conversion",
            ),
            ("HD operator const float*() const;", "a conversion"),
            ("HD __forceinline__ operator ::S() const;", "a conversion"),
            (
                "template <class T> __host__ __device__ operator T() const { return n++; }",
                "a conversion",
            ),
            ("S(int* p) : x(*p) {}", "a constructor"),
            ("explicit S(int* p) : x(*p) {}", "a constructor"),
            ("S(const S& o) : x(o.x) { ++*o.count; }", "a constructor"),
            ("template <class T> S(T t) : x(t) {}", "a constructor"),
            ("#ifdef DEBUG\n ~S() { printf(\"\"); }\n#endif", "the destructor"),
            ("int x = next();", "an initialiser"),
            ("int* p = (int*)malloc(8);", "an initialiser"),
        ] {
            assert_eq!(of(members).hidden, Some(what), "{members}");
        }
        for members in [
            "~S() {}",
            "~S() { }\n S(const S& o) : x(o.x) {}",
            "virtual ~S() = default;\n S(const S&) = delete;",
            "operator int() const { return x; }",
            "__host__ __device__ operator int() const { return x; }",
            "__host__ __device__ S operator+(int n) const { free(p); return *this; }",
            "__host__ __device__ int operator()(int n) const { free(p); return n; }",
            "__host__ __device__ int my_operator(int n) const { free(p); return n; }",
            "S(float a) { x = make_float2(a, -a); y = min(int(a), 2); }",
            "int x = 0, y = -1;",
            "std::string variant = \"none\";",
            "void operator()(int i) { free(p); }\n int release() { return free(p); }",
        ] {
            assert_eq!(of(members).hidden, None, "{members}");
        }
    }

    #[test]
    fn what_runs_on_the_host_alone() {
        for (members, host) in [
            ("S(int* p) : x(*p) {}", true),
            ("explicit S(int* p) { x = *p; }\n ~S() { free(p); }", true),
            ("virtual ~S() noexcept { n = 0; }", true),
            ("__device__ S(int* p) : x(*p) {}", false),
            ("__host__ __device__ S(int* p) : x(*p) {}", false),
            ("HD S(int* p) : x(*p) {}", false),
            ("constexpr S(int* p) : x(*p) {}", false),
            ("S(int* p) : x(*p) {}\n __device__ ~S() { free(p); }", false),
            ("__device__ ~S() { free(p); }\n S(int* p) : x(*p) {}", false),
            ("S(int* p);", false),
            ("~S();", false),
            ("int x = next();", false),
            ("template <class T> S(T t) : x(t) {}", true),
            ("template <class T> __device__ S(T t) : x(t) {}", false),
            ("S(int* p) : x(*p) {}\n CHECKED(S)", false),
            ("S(int* p) : x(*p) {}\n int y = next();", false),
        ] {
            let found = of(members);
            assert!(found.hidden.is_some(), "{members}");
            assert_eq!(found.hidden_from_device, host, "{members}");
        }
    }

    #[test]
    fn constructors_that_do_more() {
        for members in [
            "S(int a) : x(f(a)) {}",
            "S(int a) { x = a; counter = a; }",
            "S(int a) { x = ++a; }",
            "S(int a) { x[0] = a; }",
            "S(int* v) { v[0] = 1; }",
            "S(int* p) { y = p[0]; }",
            "S(int a) { v[next()] = a; }",
            "S(int a) { x += a; }",
            "S(int* p) : x(*p) {}",
            "S(int* p) : x(p[0]) {}",
            "S(T* p) : x(p->x) {}",
            "S(int x) { x = 1; }",
            "S(int a);",
            "S(int a) : S(a, 0) {}",
            "S(int a) : Base(a) {}",
            "S(int a) : x(seed) {}",
            "S(int a = seed()) : x(a) {}",
            "S(int a) { if (a) x = 1; }",
            "S(int a) { atomicAdd(&x, a); }",
            "DECL S(int a) : x(f(a)) {}",
            "S(int a) try : x(a) {} catch (...) {}",
        ] {
            let found = of(members);
            assert_eq!(found.constructors, Constructors::Other, "{members}");
            assert!(found.nontrivial, "{members}");
            let explicit = of(&format!("explicit {members}"));
            assert_eq!(explicit.constructors, Constructors::Other, "{members}");
        }
        assert!(!of("explicit S(int a) : x(f(a)) {}").nontrivial);
    }
}
