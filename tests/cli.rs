//! Does the program behave at the terminal? Every test runs the binary in a folder of its own.

use assert_cmd::Command;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const GOOD: &str = r#"
name = "small"
policy = "pull"
arrivals.rate = 0.8

[[pools]]
name = "a"
share = 1.0
buffer = 3
service.exponential.rate = 1.0

[fluid]
horizon = 10.0

[finite]
sizes = [20, 50]
replications = 4
horizon = 20.0
warmup = 5.0
"#;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("good.toml"), GOOD).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        self.run_with(args, "")
    }

    fn run_with(&self, args: &[&str], stdin: &str) -> (i32, String, String) {
        let output = Command::cargo_bin("fluidlimit")
            .unwrap()
            .current_dir(self.path())
            .args(args)
            .write_stdin(stdin)
            .timeout(std::time::Duration::from_secs(60))
            .output()
            .unwrap();
        let text = |b: &[u8]| String::from_utf8(b.to_vec()).unwrap();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// One clear error, exit code 2, nothing on standard output, no new file.
#[track_caller]
fn refused(place: &Place, args: &[&str], says: &[&str]) {
    let before = place.files();
    let (code, out, err) = place.run(args);
    assert_eq!(code, 2, "{args:?}: {err}");
    assert_eq!(out, "", "{args:?} printed");
    assert_eq!(err.matches("error:").count(), 1, "{args:?}: {err}");
    assert!(!err.contains("panicked"), "{err}");
    for text in says {
        assert!(err.contains(text), "{args:?} does not say {text:?}:\n{err}");
    }
    assert_eq!(place.files(), before, "{args:?} left a file");
}

#[test]
fn bad_models_are_refused_with_the_place() {
    let place = Place::new();
    let cases: &[(&str, &str, &str, &[&str])] = &[
        ("unknown key", "arrivals.rate = 0.8", "arrivals.rat = 0.8", &["bad.toml:4:10", "rate"]),
        ("misspelt policy", "\"pull\"", "\"pul\"", &["bad.toml:3:10", "did you mean `pull`"]),
        ("shares", "share = 1.0", "share = 0.9", &["bad.toml:8", "1"]),
        ("negative rate", "exponential.rate = 1.0", "exponential.rate = -1.0", &["bad.toml:10"]),
        ("nan", "arrivals.rate = 0.8", "arrivals.rate = nan", &["bad.toml:4"]),
        ("infinity", "exponential.rate = 1.0", "exponential.rate = inf", &["bad.toml:10"]),
        ("buffer 0", "buffer = 3", "buffer = 0", &["bad.toml:9"]),
        ("wrong type", "share = 1.0", "share = \"all\"", &["bad.toml:8"]),
        ("horizon 0", "horizon = 10.0", "horizon = 0", &["bad.toml:13"]),
        ("n = 0", "sizes = [20, 50]", "sizes = [0]", &["bad.toml:16"]),
        ("tolerance 0", "horizon = 10.0", "tolerance = 0.0", &["bad.toml:13"]),
        ("d = 0", "policy = \"pull\"", "policy.jsq-d.d = 0", &["bad.toml:3"]),
        ("not yet", "policy = \"pull\"", "population.x = 1", &["bad.toml:3", "not yet"]),
        ("no router", "policy = \"pull\"", "policy.pull.routers = 0", &["bad.toml:3", "routers"]),
    ];
    for (name, from, to, says) in cases {
        assert!(GOOD.contains(from), "{name}");
        fs::write(place.path().join("bad.toml"), GOOD.replacen(from, to, 1)).unwrap();
        for command in ["check", "solve", "simulate", "converge"] {
            refused(&place, &[command, "bad.toml"], says);
        }
    }
    let twice = format!("{GOOD}\n[[pools]]\nname = \"a\"\nshare = 0.5\nservice.exponential.rate = 1.0\n");
    fs::write(place.path().join("bad.toml"), twice.replacen("share = 1.0", "share = 0.5", 1)).unwrap();
    refused(&place, &["solve", "bad.toml"], &["bad.toml:22", "a"]);
    fs::write(place.path().join("bad.toml"), "policy = \"pull\"\narrivals.rate = 1.0\npools = []\n").unwrap();
    refused(&place, &["solve", "bad.toml"], &["pools"]);
}

#[test]
fn bad_files_are_refused() {
    let place = Place::new();
    fs::write(place.path().join("empty.toml"), "").unwrap();
    refused(&place, &["solve", "empty.toml"], &["empty"]);
    fs::create_dir(place.path().join("folder")).unwrap();
    refused(&place, &["solve", "folder"], &["folder"]);
    refused(&place, &["solve", "missing.toml"], &["missing.toml"]);
    let junk: Vec<u8> = (0..100_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(place.path().join("junk.toml"), junk).unwrap();
    refused(&place, &["solve", "junk.toml"], &["junk.toml"]);
}

#[cfg(unix)]
#[test]
fn a_file_without_permission_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let path = place.path().join("good.toml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        eprintln!("SKIPPED: this user may read every file, so there is no file without permission");
        return;
    }
    refused(&place, &["solve", "good.toml"], &["good.toml"]);
}

#[test]
fn bad_outputs_are_refused_before_the_run() {
    let place = Place::new();
    refused(&place, &["solve", "good.toml", "--out", "missing/result.json"], &["missing", "does not exist"]);
    refused(&place, &["solve", "good.toml", "--plot", "figure.gif"], &["figure.gif", ".svg"]);
    refused(&place, &["solve", "good.toml", "--plot", "missing/figure.svg"], &["missing"]);
    refused(&place, &["plot", "good.toml"], &["--plot"]);
    refused(&place, &["solve", "good.toml", "--set", "arrivals.rte=1"], &["--set", "rate"]);
    refused(&place, &["simulate", "good.toml", "--n", "0"], &["0"]);
    refused(&place, &["solve", "good.toml", "--threads", "0"], &["0"]);
    refused(&place, &["slove", "good.toml"], &["solve"]);
}

/// A pipe or a device is written to, a link is followed: neither is replaced by a file. `--out /dev/null`, run
/// by an administrator, must leave the device there.
#[cfg(unix)]
#[test]
fn pipes_are_written_to_and_links_followed() {
    use std::io::Read;
    use std::os::unix::fs::{FileTypeExt, symlink};
    let place = Place::new();
    let pipe = place.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    // Open at both ends, and large enough for the text: no one waits.
    let mut end = fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let (code, _, err) = place.run(&["solve", "good.toml", "--out", "pipe"]);
    assert_eq!(code, 0, "{err}");
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    let mut text = vec![0; 1 << 16];
    let length = end.read(&mut text).unwrap();
    assert!(String::from_utf8_lossy(&text[..length]).contains("mean_jobs"));

    for (file, option) in [("real.txt", "--out"), ("real.svg", "--plot")] {
        fs::write(place.path().join(file), "").unwrap();
        let link = place.path().join(format!("link-{file}"));
        symlink(place.path().join(file), &link).unwrap();
        let (code, _, err) = place.run(&["solve", "good.toml", option, link.to_str().unwrap()]);
        assert_eq!(code, 0, "{err}");
        assert!(fs::symlink_metadata(&link).unwrap().file_type().is_symlink());
        assert!(!fs::read(place.path().join(file)).unwrap().is_empty());
    }
}

#[test]
fn json_is_one_object_and_the_same_for_any_number_of_threads() {
    let place = Place::new();
    let result = |threads: &str| -> serde_json::Value {
        let (code, out, err) =
            place.run(&["simulate", "good.toml", "--format", "json", "--threads", threads]);
        assert_eq!(code, 0, "{err}");
        let mut value: serde_json::Value = serde_json::from_str(&out).unwrap();
        value.as_object_mut().unwrap().remove("run").unwrap();
        value
    };
    let one = result("1");
    assert_eq!(one, result("2"));
    assert_eq!(one, result("7"));
    assert_eq!(one["model"]["name"], "small");
    assert_eq!(one["finite"][0]["n"], 20);
    assert!(one["finite"][1]["measures"]["mean_jobs"]["half_width"].as_f64().unwrap() > 0.0);
    assert!((one["fluid"]["tails"]["a"][0].as_f64().unwrap() - 0.8).abs() < 1e-12);
    assert_eq!(one["fluid"]["measures"]["pools"]["a"]["p_block"], 0.0);
    let (_, out, _) = place.run(&["simulate", "good.toml", "--format", "json", "--seed", "2"]);
    let other: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_ne!(one["finite"], other["finite"]);
}

#[test]
fn csv_has_one_number_a_row() {
    let place = Place::new();
    let (code, out, _) = place.run(&["simulate", "good.toml", "--format", "csv"]);
    assert_eq!(code, 0);
    let mut reader = csv::Reader::from_reader(out.as_bytes());
    assert_eq!(
        reader.headers().unwrap(),
        vec!["reading", "n", "time", "pool", "level", "quantity", "value", "half_width"]
    );
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert!(rows.iter().all(|r| r[6].is_empty() || r[6].parse::<f64>().is_ok()));
    assert!(rows.iter().any(|r| &r[0] == "finite" && &r[1] == "20" && &r[5] == "p_wait"));
}

/// Routers and tiers are counted from 1 in every format, and the table says what happened in words.
#[test]
fn events_name_their_router() {
    let place = Place::new();
    // All messages at router 1 and a stream that uses them up.
    let set = ["--set", "policy.pull.routers=2", "--set", "fluid.messages=[1.0, 0.0]"];
    let solve = |format: &str| {
        let (code, out, err) = place.run(
            &[&["solve", "good.toml", "--set", "arrivals.rate=1.3"][..], &set, &["--format", format]]
                .concat(),
        );
        assert_eq!(code, 0, "{err}");
        out
    };
    let json: serde_json::Value = serde_json::from_str(&solve("json")).unwrap();
    let event = &json["fluid"]["events"][0];
    assert_eq!((event["tier"].as_u64(), event["router"].as_u64()), (Some(1), Some(1)));
    assert_eq!(event["what"], "no message left at router 1");
    assert!(solve("csv").contains("fluid,,,,1,hit,"));
    assert!(solve("table").contains("no message left at router 1"));
}

#[test]
fn results_go_to_files_whole() {
    let place = Place::new();
    let (code, out, err) =
        place.run(&["solve", "good.toml", "--format", "json", "--out", "r.json", "--plot", "f.svg"]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    assert_eq!(place.files(), ["f.svg", "good.toml", "r.json"]);
    let text = fs::read_to_string(place.path().join("r.json")).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    for kind in ["trajectory", "levels", "convergence"] {
        let (code, out, err) =
            place.run(&["plot", "good.toml", "--kind", kind, "--plot", "g.png", "--quiet"]);
        assert_eq!((code, out.as_str(), err.as_str()), (0, "", ""));
    }
}

#[test]
fn expectations_decide_the_exit_code() {
    let place = Place::new();
    let expect = |value: &str| {
        let text = format!(
            "{GOOD}\n[expect]\n\"x.a.1\" = {{ value = {value}, tolerance = 1e-9, source = \"rho\" }}\n"
        );
        fs::write(place.path().join("e.toml"), text).unwrap();
        place.run(&["solve", "e.toml"])
    };
    let (code, out, _) = expect("0.8");
    assert_eq!(code, 0);
    assert!(out.contains("holds"));
    let (code, out, _) = expect("0.7");
    assert_eq!(code, 1);
    assert!(out.contains("MISSED"));
    let (code, _, err) = place.run(&["solve", "e.toml", "--set", "arrivals.rate=0.5"]);
    assert_eq!(code, 0);
    assert!(err.contains("not checked"));
}

#[test]
fn standard_input_is_a_model() {
    let place = Place::new();
    let (code, out, err) = place.run_with(&["solve", "-"], GOOD);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("small: PULL"));
    let (code, _, err) = place.run_with(&["check", "-"], "policy = 3");
    assert_eq!(code, 2);
    assert!(err.contains("stdin") || err.contains("standard input"), "{err}");
}

#[test]
fn help_and_version_are_there() {
    let place = Place::new();
    for command in ["check", "solve", "simulate", "converge", "plot", "fit"] {
        let (code, out, _) = place.run(&[command, "--help"]);
        assert_eq!(code, 0);
        assert!(out.contains("Examples:") || command == "check", "{command}");
    }
    assert_eq!(place.run(&["--version"]).0, 0);
}

#[test]
fn servers_one_by_one_give_quantiles_and_the_same_bytes_for_any_number_of_threads() {
    let place = Place::new();
    let result = |threads: &str, format: &str| -> String {
        let args =
            ["simulate", "good.toml", "--sampler", "servers", "--format", format, "--threads", threads];
        let (code, out, err) = place.run(&args);
        assert_eq!(code, 0, "{err}");
        out
    };
    for format in ["table", "csv"] {
        let one = result("1", format);
        assert_eq!(one, result("2", format));
        assert_eq!(one, result("7", format));
        assert!(one.contains("p90"), "{one}");
    }
    let json = |threads| -> serde_json::Value {
        let mut value: serde_json::Value = serde_json::from_str(&result(threads, "json")).unwrap();
        value.as_object_mut().unwrap().remove("run").unwrap();
        value
    };
    let one = json("1");
    assert_eq!(one.to_string(), json("2").to_string());
    assert_eq!(one.to_string(), json("7").to_string());
    let finite = &one["finite"][0];
    assert_eq!(finite["sampler"], "servers");
    assert!(finite["job_times"]["response_time"]["p90"]["half_width"].as_f64().unwrap() > 0.0);
    assert!(finite["job_times"]["pools"]["a"]["waiting_time"]["mean"]["value"].as_f64().unwrap() >= 0.0);
    // Counts follow no job.
    let (_, out, _) = place.run(&["simulate", "good.toml", "--format", "json"]);
    let counts: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(counts["finite"][0]["sampler"], "counts");
    assert!(counts["finite"][0]["job_times"].is_null());
    let huge = ["simulate", "good.toml", "--sampler", "servers", "--n", "100000000"];
    refused(&place, &huge, &["100000000 servers", "1024 MiB", "sampler of counts"]);
    refused(&place, &["simulate", "good.toml", "--sampler", "gillespie"], &["counts", "servers"]);
}

#[test]
fn exact_solves_small_systems_and_refuses_large_ones() {
    let place = Place::new();
    let (code, out, err) = place.run(&["exact", "good.toml", "--n", "2,3"]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("n = 2: 10 states") && err.contains("n = 3: 20 states"), "{err}");
    assert!(out.contains("n = 3 (a 3): exact") && out.contains("p_block"), "{out}");
    let (code, _, err) =
        place.run(&["exact", "good.toml", "--n", "2", "--quiet", "--out", "exact.csv", "--format", "csv"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let csv = fs::read_to_string(place.path().join("exact.csv")).unwrap();
    assert!(csv.contains("exact,2,,,0,p_idle_servers,"), "{csv}");
    let (code, out, _) = place.run(&["exact", "good.toml", "--n", "2", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let part = &json["exact"][0];
    assert_eq!((code, part["idle_servers"].as_array().unwrap().len()), (0, 3));
    assert_eq!(part["statistics"]["method"], "elimination");
    let total: f64 = part["jobs"].as_array().unwrap().iter().map(|p| p.as_f64().unwrap()).sum();
    assert!((total - 1.0).abs() < 1e-14);
    assert_eq!(part["trajectory"][0]["tails"]["a"][0], 0.0);
    refused(&place, &["exact", "good.toml", "--n", "100000", "--quiet"], &["100000 servers", "--n"]);
    let n = "1000000000000";
    refused(&place, &["exact", "good.toml", "--n", n, "--quiet"], &["chain of 1000000000000 servers", "--n"]);
    refused(&place, &["exact", "good.toml", "--n", &format!("{n}0")], &["not in 1..=1000000000000"]);
    refused(&place, &["exact", "good.toml", "--n", "2", "--plot", "a.svg"], &["--plot"]);
}

/// A model with formulas of n: each command takes them where it must, standard input read once.
#[test]
fn formulas_are_taken_at_each_n() {
    let place = Place::new();
    let text = GOOD
        .replace("arrivals.rate = 0.8", "arrivals.rate = \"1 - n^-0.5\"")
        .replace("sizes = [20, 50]", "sizes = [25, 100]");
    fs::write(place.path().join("sized.toml"), &text).unwrap();
    refused(&place, &["solve", "sized.toml"], &["formulas of n", "--n N"]);
    refused(&place, &["solve", "sized.toml", "--n", "25,100"], &["--n N"]);
    let value = |args: &[&str], stdin: &str| -> serde_json::Value {
        let (code, out, err) = place.run_with(args, stdin);
        assert_eq!(code, 0, "{args:?}: {err}");
        serde_json::from_str(&out).unwrap()
    };
    let solved = value(&["solve", "sized.toml", "--n", "25", "--format", "json"], "");
    assert!((solved["model"]["arrival_rate"].as_f64().unwrap() - 0.8).abs() < 1e-15);
    assert_eq!(solved["model"]["taken_at"], 25);
    // PULL below capacity: the utilisation at each n is that n's load.
    let simulated = value(&["simulate", "-", "--format", "json", "--seed", "3"], &text);
    for (run, load) in simulated["finite"].as_array().unwrap().iter().zip([0.8, 0.9]) {
        let throughput = &run["measures"]["throughput"];
        let (found, half) =
            (throughput["value"].as_f64().unwrap(), throughput["half_width"].as_f64().unwrap());
        assert!((found - load).abs() < 0.1 + half, "{found} against {load}");
    }
    assert!((simulated["fluid"]["measures"]["utilisation"].as_f64().unwrap() - 0.9).abs() < 1e-12);
    let converged = value(&["converge", "sized.toml", "--format", "json"], "");
    assert!(converged["convergence"]["bias"].as_array().unwrap().len() > 3);
    let exact = value(&["exact", "sized.toml", "--n", "4", "--format", "json"], "");
    assert!((exact["model"]["arrival_rate"].as_f64().unwrap() - 0.5).abs() < 1e-15);
    assert!(exact["sizes"].is_null());
    // Beside several n each has the fluid of its own: below capacity its utilisation is its load.
    let args = ["exact", "sized.toml", "--n", "4,16", "--format"];
    let exact = value(&[&args[..], &["json"]].concat(), "");
    for (size, (n, load)) in exact["sizes"].as_array().unwrap().iter().zip([(4, 0.5), (16, 0.75)]) {
        assert_eq!((size["n"].as_u64(), size["arrival_rate"].as_f64()), (Some(n), Some(load)));
        assert!((size["fluid"]["utilisation"].as_f64().unwrap() - load).abs() < 1e-12);
    }
    let (code, table, err) = place.run(&[&args[..], &["table"]].concat());
    assert_eq!(code, 0, "{err}");
    let utilisations = table.lines().filter(|line| line.starts_with("  utilisation"));
    let fluid = utilisations.skip(1).map(|line| line.split_whitespace().nth(2).unwrap());
    assert_eq!(fluid.collect::<Vec<_>>(), ["0.5", "0.75"], "{table}");
    let (_, csv, _) = place.run(&[&args[..], &["csv"]].concat());
    assert!(csv.contains("model,4,,,,arrival_rate,0.5,"), "{csv}");
    // What differs between the sizes of `converge` is shown for each.
    let sizes = converged["sizes"].as_array().unwrap();
    let loads: Vec<f64> = sizes.iter().map(|size| size["load"].as_f64().unwrap()).collect();
    assert!((loads[0] - 0.8).abs() < 1e-12 && (loads[1] - 0.9).abs() < 1e-12, "{loads:?}");
    refused(&place, &["simulate", "sized.toml", "--plot", "levels.svg"], &["formulas of n", "--n N"]);
}
