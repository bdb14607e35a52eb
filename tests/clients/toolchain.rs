//! What the programs of a language need before they run. Made once and kept below `target/`, under
//! a key of what it was made from: a second run needs no network.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Why something could not be made, as the test that wanted it shall say.
type Made<T> = Result<T, String>;

pub struct Python {
    pub interpreter: PathBuf,
    /// What the wire contract was compiled to.
    pub stubs: PathBuf,
}

pub fn python() -> &'static Python {
    static PYTHON: OnceLock<Made<Python>> = OnceLock::new();
    wanted(PYTHON.get_or_init(make_python))
}

/// Where the packages of the Node programs are.
pub fn node_modules() -> &'static PathBuf {
    static NODE: OnceLock<Made<PathBuf>> = OnceLock::new();
    wanted(NODE.get_or_init(make_node_modules))
}

/// Where the Rust programs are.
pub fn rust_examples() -> &'static PathBuf {
    static RUST: OnceLock<Made<PathBuf>> = OnceLock::new();
    wanted(RUST.get_or_init(make_rust_examples))
}

#[track_caller]
fn wanted<T>(made: &'static Made<T>) -> &'static T {
    made.as_ref().unwrap_or_else(|why| panic!("{why}"))
}

fn make_python() -> Made<Python> {
    const NEEDS: &str = "The Python clients need python3 with venv, and once the Python package index.";
    let requirements = root().join("clients/python/requirements.txt");
    let version = run(Command::new("python3").arg("-VV"), NEEDS)?;
    let packages = [version.into_bytes(), read(&requirements)?].concat();
    let venv = kept("python-venv", &[&packages], |place| {
        run(Command::new("python3").args(["-m", "venv"]).arg(place), NEEDS)?;
        let mut pip = Command::new(place.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        run(pip.arg(&requirements), NEEDS).map(drop)
    })?;
    let interpreter = venv.join("bin/python");
    let contract = root().join("proto");
    let protos = ["service", "client", "shared", "admin"]
        .map(|name| contract.join("tinybroker/v1").join(name).with_extension("proto"));
    let texts = protos.iter().map(|path| read(path)).collect::<Made<Vec<_>>>()?.concat();
    let stubs = kept("python-stubs", &[&packages, &texts], |place| {
        let mut protoc = Command::new(&interpreter);
        protoc.args(["-m", "grpc_tools.protoc", "--proto_path"]).arg(&contract);
        for option in ["--python_out", "--grpc_python_out"] {
            protoc.arg(option).arg(place);
        }
        run(protoc.args(&protos), NEEDS).map(drop)
    })?;
    Ok(Python { interpreter, stubs })
}

fn make_node_modules() -> Made<PathBuf> {
    const NEEDS: &str = "The Node clients need node and npm, and once the npm registry.";
    const FILES: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];
    let source = root().join("clients/node");
    let texts = FILES.iter().map(|name| read(&source.join(name))).collect::<Made<Vec<_>>>()?.concat();
    let place = kept("node", &[&texts], |place| {
        for name in FILES {
            fs::copy(source.join(name), place.join(name)).map_err(|error| error.to_string())?;
        }
        let mut npm = Command::new("npm");
        npm.current_dir(place).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
        run(&mut npm, NEEDS).map(drop)
    })?;
    Ok(place.join("node_modules"))
}

/// Cargo builds the examples of a package with all its tests, but not with one of them.
fn make_rust_examples() -> Made<PathBuf> {
    let test = std::env::current_exe().map_err(|error| error.to_string())?;
    let built = test.ancestors().nth(2).expect("tests run from target/PROFILE/deps");
    let target = built.parent().expect("tests run from target/PROFILE/deps");
    let profile = match built.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).args(["build", "--examples", "--locked", "--profile", profile, "--target-dir"]);
    run(cargo.arg(target), "The Rust clients are examples of this package.")?;
    Ok(built.join("examples"))
}

/// The folder of this name and content; made where it is not there in full.
fn kept(name: &str, key: &[&[u8]], make: impl FnOnce(&Path) -> Made<()>) -> Made<PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients");
    let mut hasher = DefaultHasher::new();
    key.iter().for_each(|part| hasher.write(part));
    let place = home.join(format!("{name}-{:016x}", hasher.finish()));
    let complete = place.join(".complete");
    let prepare = || {
        fs::create_dir_all(&home)?;
        let lock = File::create(home.join(format!("{name}.lock")))?;
        // Another run of the tests may be making the same.
        lock.lock()?;
        if !complete.exists() {
            if place.exists() {
                fs::remove_dir_all(&place)?;
            }
            fs::create_dir(&place)?;
        }
        std::io::Result::Ok(lock)
    };
    let _lock = prepare().map_err(|error| format!("{}: {error}", place.display()))?;
    if !complete.exists() {
        make(&place)?;
        File::create(&complete).map_err(|error| error.to_string())?;
    }
    Ok(place)
}

/// What a command prints. Where it fails, what it said and what it `needs`.
fn run(command: &mut Command, needs: &str) -> Made<String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}\n{needs}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    Err(format!("{command:?}: {}\n{text}{}\n{needs}", output.status, String::from_utf8_lossy(&output.stderr)))
}

fn read(path: &Path) -> Made<Vec<u8>> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
