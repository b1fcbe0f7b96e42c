//! `cargo xtask evidence`: the ledger, a page of the book that says what was tried, how often, and
//! how to try it again. Runs are kept one file each, and the page is drawn from them alone.

use std::fmt::Write;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::command::{self, program, root};

/// What is said of a bug that no test finds.
const UNNOTICED: &str = "nobody notices";
/// What belongs into the ledger stands behind one of these. The name of a test may stand before.
const COUNTED: [&str; 2] = ["evidence: ", "planted: "];
const FOLDER: &str = "docs/evidence";
pub(crate) const PAGE: &str = "docs/book/src/ledger.md";

/// One kind of evidence, and the chore that finds it.
struct Part {
    name: &'static str,
    title: &'static str,
    chore: &'static str,
}

const PARTS: [Part; 10] = [
    Part {
        name: "simulation",
        title: "The whole engine in simulated weather: crashes, torn and lost writes, rot, lost and doubled messages, clocks that jump (T2)",
        chore: "sim --seeds 20000",
    },
    Part {
        name: "crashes",
        title: "Crashes after every call to a modelled disk, with every legal rest of what was not synced (T3)",
        chore: "torture crashes --count 500000",
    },
    Part {
        name: "kill-points",
        title: "The real server killed inside the Nth call of each kind (T4)",
        chore: "torture kill-points --count 50",
    },
    Part {
        name: "power-cuts",
        title: "The power cut under the real server, on a real file system (T5)",
        chore: "torture power-cuts --count 200",
    },
    Part {
        name: "kills",
        title: "The real server killed while clients, workers, followers and workflows are busy (T6)",
        chore: "torture kills --count 1000",
    },
    Part {
        name: "damage",
        title: "Every bit of a reference log and of a snapshot changed, every cut, every lost sector (T7)",
        chore: "torture damage",
    },
    Part {
        name: "failures",
        title: "Every call to the disk failed, in every way (T8)",
        chore: "torture failures --count 20000",
    },
    Part {
        name: "histories",
        title: "What clients saw, put in order for each task (T9)",
        chore: "torture histories --count 100",
    },
    Part {
        name: "fuzzing",
        title: "Inputs that no client would send, guided by coverage (T16)",
        chore: "fuzz --minutes 1",
    },
    Part {
        name: "planted",
        title: "Bugs that were put in on purpose, and what noticed each (T20)",
        chore: "planted",
    },
];

/// The figures that come first, each with the part that has it and the words beside it there.
const FIGURES: [(&str, &str, &str); 11] = [
    ("simulated seeds", "simulation", "seeds"),
    ("virtual hours", "simulation", "virtual hours"),
    ("simulated events", "simulation", "events"),
    ("crash images", "crashes", "crash images"),
    ("kills of the server", "kills", "kills"),
    ("kills inside of a call", "kill-points", "kills inside calls"),
    ("power cuts", "power-cuts", "power cuts"),
    ("bits, cuts and sectors damaged", "damage", "damages"),
    ("calls to the disk that failed", "failures", "failed calls"),
    ("histories put in order", "histories", "histories"),
    ("inputs that no client would send", "fuzzing", "fuzz executions"),
];
/// What must be nothing, and the parts that look for it.
const LOSSES: [(&str, &str); 2] =
    [("acknowledged and lost", "lost"), ("seen and undone", "undone")];
const LOOK_FOR_LOSSES: [&str; 3] = ["kills", "kill-points", "power-cuts"];

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let wanted: Vec<&Part> = match args {
        [all] if all == "all" => PARTS.iter().collect(),
        names => names.iter().map(|name| part(name)).collect::<Result<_, _>>()?,
    };
    for part in wanted {
        gather(part)?;
        draw()?;
    }
    draw()?;
    println!("{PAGE} says what is in {FOLDER}.");
    Ok(())
}

fn part(name: &str) -> Result<&'static Part, String> {
    PARTS.iter().find(|part| part.name == name).ok_or_else(|| {
        let names = PARTS.map(|part| part.name).join(", ");
        format!("There is no evidence named `{name}`. There are {names}, or `all` of them.")
    })
}

/// Runs the chore, shows what it says, and keeps what it counted.
fn gather(part: &Part) -> Result<(), String> {
    println!("\n{}: cargo xtask {} …", part.name, part.chore);
    let itself = std::env::current_exe().map_err(|error| format!("Where am I? {error}."))?;
    let mut chore = program(itself);
    chore.args(part.chore.split(' ')).stdout(Stdio::piped());
    let failed = |error: std::io::Error| format!("the chore could not be run: {error}.");
    let mut running = chore.spawn().map_err(failed)?;
    let mut kept = format!("{}\n", today()?);
    for line in running.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
        let line = line.map_err(failed)?;
        println!("{line}");
        if let Some((_, counted)) = COUNTED.iter().find_map(|mark| line.split_once(mark)) {
            kept.push_str(counted);
            kept.push('\n');
        }
    }
    if !running.wait().map_err(failed)?.success() {
        return Err(format!("`cargo xtask {}` found something; see above.", part.chore));
    }
    if kept.lines().count() < 2 {
        return Err(format!("`cargo xtask {}` has counted nothing.", part.chore));
    }
    write(&format!("{FOLDER}/{}.txt", part.name), &kept)
}

/// The day, as people who repeat it want to know how old it is.
fn today() -> Result<String, String> {
    let day = command::stdout_of(program("date").args(["-u", "+%Y-%m-%d"]))?;
    Ok(day.trim().to_owned())
}

fn draw() -> Result<(), String> {
    write(PAGE, &page(|path| fs::read_to_string(root().join(path)).ok()))
}

fn write(path: &str, text: &str) -> Result<(), String> {
    let path = root().join(path);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}.", folder.display()))?;
    }
    fs::write(&path, text).map_err(|error| format!("{}: {error}.", path.display()))
}

/// The page, from what was kept.
pub(crate) fn page(kept: impl Fn(&str) -> Option<String>) -> String {
    let mut page =
        "# The ledger\n\n<!-- Drawn by `cargo xtask evidence`; edit that instead. -->\n\n\
        What was tried to break [the promises](promises.md), how often, and how to try it again. \
        Every change runs a short form of each; these are the long ones, as they were run once, on \
        the day that is told.\n\n\
        | | |\n|---|--:|\n"
            .to_owned();
    let text = |name: &str| kept(&format!("{FOLDER}/{name}.txt"));
    let mut row = |title: &str, count: f64| {
        let _ = writeln!(page, "| {title} | {} |", grouped(count));
    };
    for (title, part, words) in FIGURES {
        let first = text(part).and_then(|text| beside(&text, words).next());
        first.into_iter().for_each(|count| row(title, count));
    }
    for (title, words) in LOSSES {
        let texts: Vec<String> = LOOK_FOR_LOSSES.into_iter().filter_map(text).collect();
        let counts: Vec<f64> = texts.iter().flat_map(|text| beside(text, words)).collect();
        (!counts.is_empty()).then(|| row(title, counts.iter().sum()));
    }
    if let Some(text) = text("planted") {
        let planted = text.lines().filter(|line| line.contains(" | "));
        let noticed = planted.filter(|line| !line.contains(UNNOTICED)).count();
        row("bugs put in on purpose, and noticed", noticed as f64);
    }
    for Part { name, title, chore } in PARTS {
        let _ = write!(page, "\n## {title}\n\n");
        match kept(&format!("{FOLDER}/{name}.txt")) {
            Some(text) => {
                let mut lines = text.lines();
                let day = lines.next().unwrap_or_default();
                lines.for_each(|line| page.push_str(&format!("- {line}\n")));
                let _ = writeln!(page, "\nOn {day}, by `cargo xtask {chore}`.");
            }
            None => {
                let _ = writeln!(page, "Not yet run in its long form: `cargo xtask {chore}`.");
            }
        }
    }
    page
}

/// The number right before or right behind these words, once for each line that has one.
fn beside<'a>(text: &'a str, words: &'a str) -> impl Iterator<Item = f64> + 'a {
    let find = move |part: &str| {
        let (before, behind) = format!(" {part} ")
            .split_once(&format!(" {words} "))
            .map(|(before, behind)| (before.to_owned(), behind.to_owned()))?;
        let before = before.rsplit(' ').next().and_then(|word| word.parse().ok());
        before.or_else(|| behind.split(' ').next().and_then(|word| word.parse().ok()))
    };
    text.lines().filter_map(move |line| line.split([',', ':', ';']).map(str::trim).find_map(find))
}

/// 1234567.8 as 1,234,567.
fn grouped(count: f64) -> String {
    let digits = format!("{:.0}", count.floor());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_was_run_shows_its_counts_and_the_others_say_that_they_were_not() {
        let kept = |path: &str| {
            (path == "docs/evidence/kills.txt")
                .then(|| "2026-11-16\nT6 kills 1000, lost 0\n".to_owned())
        };
        let page = page(kept);
        assert!(page.contains(
            "- T6 kills 1000, lost 0\n\nOn 2026-11-16, by `cargo xtask torture kills --count 1000`."
        ));
        assert_eq!(page.matches("Not yet run").count(), PARTS.len() - 1);
        assert!(
            page.contains("| kills of the server | 1,000 |\n| acknowledged and lost | 0 |\n\n")
        );
    }

    #[test]
    fn a_figure_is_the_number_beside_its_words() {
        let text = "2026-11-16\nT2 20000 seeds, 3339.2 virtual hours, 5 events; killed 7\n";
        let found = |words| beside(text, words).collect::<Vec<_>>();
        assert_eq!(found("seeds"), [20_000.0]);
        assert_eq!(found("virtual hours"), [3_339.2]);
        assert_eq!(found("events"), [5.0]);
        assert_eq!(found("killed"), [7.0]);
        assert_eq!(found("kill"), [0.0; 0]);
        assert_eq!([grouped(0.0), grouped(999.9), grouped(1_234_567.0)], ["0", "999", "1,234,567"]);
    }

    #[test]
    fn evidence_that_there_is_not_is_refused() {
        assert!(run(&["rumors".to_owned()]).unwrap_err().contains("`rumors`"));
    }
}
