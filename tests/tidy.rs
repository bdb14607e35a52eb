//! House rules that the compiler does not know: who may import whom, what stays pure, sizes.

use std::fs;
use std::path::{Path, PathBuf};

/// Each layer with those it may import; `cli` may import all.
const LAYERS: [(&str, &[&str]); 11] = [
    ("limits", &[]),
    ("memory", &["limits"]),
    ("model", &["limits", "memory"]),
    ("pattern", &["limits", "model"]),
    ("core", &["limits", "model", "pattern"]),
    ("ring", &["limits"]),
    ("shard", &["limits", "memory", "model", "pattern", "core", "ring"]),
    ("proto", &[]),
    ("frontend", &["limits", "model", "pattern", "core", "shard", "proto"]),
    ("admin", &["limits", "core", "shard", "frontend", "proto"]),
    ("config", &["limits"]),
];

/// What only some files may name.
const RESERVED: [(&str, &[&str]); 3] = [
    ("tokio::", &["cli/", "shard/runtime.rs", "frontend/net.rs"]),
    ("crate::proto", &["frontend/convert/", "frontend/event.rs", "frontend/calls/", "admin/", "cli/"]),
    ("h2::", &["frontend/connection.rs", "frontend/keepalive.rs", "frontend/grpc/", "frontend/calls/mod.rs"]),
];

/// What the pure layers must not know: clocks, sockets, threads, chance.
const IMPURE: [&str; 9] = [
    "std::time::Instant",
    "SystemTime",
    "std::net",
    "std::thread",
    "std::sync::atomic",
    "std::env",
    "tonic",
    "crossbeam",
    "rand::",
];

/// What no code of the broker may contain: a panic on input, or unfinished work.
const BANNED: [&str; 6] = [".unwrap()", ".expect(", "todo!(", "unimplemented!(", "dbg!(", "#[allow("];

const MOST_FILE_LINES: usize = 600;
const MOST_FUNCTION_LINES: usize = 70;

/// A source file without its tests.
struct Source {
    /// Below `src/`, with `/`.
    name: String,
    code: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    assert!(files.len() > 40, "the sources are found");
    let source = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("a source file is text");
        let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
        Source { name: path.strip_prefix(&root).expect("below src").display().to_string(), code }
    };
    files.iter().map(source).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder can be read") {
        let path = entry.expect("an entry can be read").path();
        let is_test = path.file_name().is_some_and(|name| name == "tests.rs" || name == "loom.rs");
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
            files.push(path);
        }
    }
}

/// Lines of code, comments left out, with their numbers.
fn lines(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(source.code.lines()).filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[test]
fn layers_import_only_what_lies_below() {
    let mut broken = Vec::new();
    for source in sources() {
        let layer = source.name.split(['/', '.']).next().unwrap_or_default();
        let Some((_, below)) = LAYERS.iter().find(|(name, _)| *name == layer) else { continue };
        for (number, line) in lines(&source) {
            for path in line.split("crate::").skip(1) {
                let imported: String =
                    path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let is_layer = LAYERS.iter().any(|(name, _)| *name == imported) || imported == "cli";
                if is_layer && imported != layer && !below.contains(&imported.as_str()) {
                    broken.push(format!("{}:{number} imports {imported}", source.name));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn reserved_names_stay_where_they_belong() {
    let mut broken = Vec::new();
    for source in sources() {
        for (name, allowed) in RESERVED {
            let is_allowed = allowed.iter().any(|file| source.name.starts_with(file));
            let lines = lines(&source).filter(|(_, line)| !is_allowed && line.contains(name));
            broken.extend(lines.map(|(number, _)| format!("{}:{number} names {name}", source.name)));
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn the_lower_layers_are_pure() {
    let mut broken = Vec::new();
    for source in sources() {
        if !["model/", "pattern/", "core/"].iter().any(|layer| source.name.starts_with(layer)) {
            continue;
        }
        for (number, line) in lines(&source) {
            let impure = IMPURE.iter().filter(|name| line.contains(**name));
            broken.extend(impure.map(|name| format!("{}:{number} knows {name}", source.name)));
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn nothing_panics_on_input_or_is_left_unfinished() {
    let mut broken = Vec::new();
    for source in sources() {
        for (number, line) in lines(&source) {
            let banned = BANNED.iter().filter(|name| line.contains(**name));
            broken.extend(banned.map(|name| format!("{}:{number} has {name}", source.name)));
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn files_and_functions_fit() {
    let mut broken = Vec::new();
    for source in sources() {
        let count = source.code.lines().count();
        if count > MOST_FILE_LINES {
            broken.push(format!("{} has {count} lines; most {MOST_FILE_LINES}", source.name));
        }
        let mut begun: Option<(usize, &str, usize)> = None;
        for (number, line) in (1..).zip(source.code.lines()) {
            let indent = line.len() - line.trim_start().len();
            let is_function = line.trim_start().split(' ').take(4).any(|word| word == "fn");
            match begun {
                None if is_function && !line.ends_with(['}', ';']) => begun = Some((number, line, indent)),
                Some((first, head, depth)) if indent == depth && line.trim() == "}" => {
                    if number - first >= MOST_FUNCTION_LINES {
                        broken.push(format!(
                            "{}:{first} has {} lines: {}",
                            source.name,
                            number - first,
                            head.trim()
                        ));
                    }
                    begun = None;
                }
                _ => {}
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The tests that a row of docs/promises.md names: `file::test`, below tests/semantics where no folder is given.
fn tests_named(row: &str) -> Vec<(PathBuf, &str)> {
    let named = row.split('`').skip(1).step_by(2).filter_map(|name| name.rsplit_once("::"));
    let file = |(file, test)| {
        // A module within a file is no file.
        let file: &str = str::split(file, "::").next().unwrap_or_default();
        let folder = match file.split_once('/') {
            Some(("src", _)) => "",
            Some(_) => "tests/",
            None => "tests/semantics/",
        };
        (Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{folder}{file}.rs")), test)
    };
    named.map(file).collect()
}

#[test]
fn every_promise_has_tests_that_exist() {
    let table = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/promises.md"));
    let table = table.expect("the table is there");
    let rows = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| promise"));
    let rows: Vec<&str> = rows.filter(|line| !line.starts_with("| ---")).collect();
    assert!(rows.len() > 100, "the rows are found");
    let mut broken = Vec::new();
    for row in rows {
        let tests = tests_named(row.trim_end_matches(" |").rsplit('|').next().unwrap_or_default());
        if tests.is_empty() {
            broken.push(format!("no test: {row}"));
        }
        for (file, test) in tests {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let head = format!("fn {test}(");
            let lines: Vec<&str> = text.lines().collect();
            let is_test = lines.windows(2).any(|pair| pair[0].contains("test") && pair[1].contains(&head));
            if !is_test {
                broken.push(format!("{} has no test {test}", file.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
