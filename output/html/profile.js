// A profile: what ran, then each file's lines and functions with what they cost. Draws its columns
// from the profile's own list of them.
"use strict";

const HOT_PERCENT = 33;

// Scalene's own profiles tell no columns: all that a line has, then.
function columnsOf(profile) {
    if (profile.columns)
        return profile.columns;
    const line = Object.values(profile.files).flatMap((file) => file.lines)[0] ?? {};
    const kinds = { lineno: "line", line: "source", memory_samples: "spark", is_coroutine: "flag",
                    cpu_samples_list: "moments", async_task_names: "texts" };
    return Object.keys(line).map((key) => (
        { key, title: key, help: "", kind: kinds[key] ?? (/percent/.test(key) ? "percent" : "number") }));
}

function isUsed(column, rows) {
    return column.kind === "source" || rows.some((row) => format(column.kind, row[column.key]));
}

// What costs the whole run a third or more, of its time, of the GPU or of its memory: as
// line_table.c has it.
function isHot(row) {
    const time = ["n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent"]
        .reduce((sum, key) => sum + (row[key] ?? 0), 0);
    return time >= HOT_PERCENT || row.n_gpu_percent >= HOT_PERCENT ||
        100 * row.n_usage_fraction >= HOT_PERCENT;
}

function cell(column, row) {
    const text = format(column.kind, row[column.key]);
    if (column.kind === "source")
        return element("td", {}, element("code", { textContent: text }));
    return element("td", { className: NUMBERS.has(column.kind) ? "number" : "", textContent: text });
}

function heading(column) {
    const made = element("th", { className: NUMBERS.has(column.kind) ? "number" : "",
                                 textContent: column.title, title: column.help });
    made.dataset.key = column.key;
    return made;
}

function table(rows, columns, kind) {
    const body = element("tbody", { className: kind });
    for (const row of rows)
        body.append(element("tr", { className: isHot(row) ? "hot" : "" },
                            ...columns.map((column) => cell(column, row))));
    const head = element("thead", {}, element("tr", {}, ...columns.map(heading)));
    return element("table", {}, head, body);
}

const LISTS = new Set(["native", "texts", "waits", "spark"]);

// The shares of the time, then the code, so that both are in the window, then other numbers and what
// takes room.
function place(column) {
    if (column.kind === "line")
        return 0;
    if (column.kind === "source")
        return 2;
    return column.group === "cpu" ? 1 : LISTS.has(column.kind) ? 4 : 3;
}

// Regions are for a program that reads, and moments for one that draws: shown when asked for.
const ALL = "#all";

function isForPrograms(column) {
    return column.group === "region" || column.kind === "moments";
}

function columnsShown(columns, rows) {
    return columns.filter((column) => (location.hash === ALL || !isForPrograms(column))
                                      && isUsed(column, rows))
        .sort((a, b) => place(a) - place(b));
}

function columnsLink() {
    return location.hash === ALL ? element("a", { href: "#", textContent: "Fewer columns" })
                                 : element("a", { href: ALL, textContent: "All columns" });
}

function fileSection(path, file, columns, isFirst) {
    const share = told(file.percent_cpu_time, (percent) => `: ${fixed(percent, 1)}% of the time`);
    const section = element("details", { open: isFirst },
                            element("summary", { textContent: shown(path) + share.join("") }));
    section.append(table(file.lines, columns, "lines"));
    if (file.functions.length)
        section.append(element("h2", { textContent: "Functions" }),
                       table(file.functions, columns, "functions"));
    for (const [line, leak] of Object.entries(file.leaks ?? {}))
        section.append(element("p", { textContent:
            `Possible leak at line ${line}: ${format("fraction", leak.likelihood)} likely, ` +
            `grows by ${format("rate", leak.velocity_mb_s) || "little"}` }));
    return section;
}

// What a profile does not tell is no zero.
function told(value, text) {
    return value === undefined || value === null ? [] : [text(value)];
}

const number = (value) => format("count", value) || "0";

function samplingWords(sampling) {
    const looks = [...told(sampling.samples, number),
                   ...told(sampling.rate_hz, (rate) => `at ${fixed(rate, 0)} Hz`)].join(" ");
    return [...(looks ? [looks] : []),
            ...told(sampling.dropped, (count) => `${number(count)} dropped`),
            ...(sampling.missed ? [`${number(sampling.missed)} missed`] : [])].join(", ");
}

function pausedWords(sampling) {
    const time = (value) => format("seconds", value) || "0s";
    const pauses = [...told(sampling.pauses, (count) => `in ${number(count)} pauses`),
                    ...told(sampling.longest_pause_us, (us) => `the longest ${time(us / 1e6)}`)];
    return told(sampling.paused_s, (paused) => `${time(paused)} ${pauses.join(", ")}`).join("");
}

function memoryWords(profile) {
    const peak = (value) => `${format("megabytes", value) || "0"} at most`;
    const growth = (value) => `growth rate ${format("percent", value) || "0%"}`;
    const words = [...told(profile.max_footprint_mb, peak), ...told(profile.growth_rate, growth)];
    return `${format("spark", profile.samples)} ${words.join(", ")}`.trim();
}

function threadsWords(profile, pythons) {
    const threads = (profile.threads ?? []).filter((thread) => thread.ident || thread.name);
    return pythons.length && profile.threads ? `${threads.length} in ${pythons.length} process` +
                            (pythons.length > 1 ? "es" : "") : "";
}

function head(profile) {
    const totals = profile.totals ?? {}, sampling = profile.sampling ?? {};
    const pythons = (profile.processes ?? []).filter((process) => process.python);
    return facts([
        ["Command", shown((profile.processes?.[0]?.argv ?? profile.args ?? []).join(" "))],
        ["Python", shown([...new Set(pythons.map((process) => process.python))].join(", "))],
        ["Elapsed", format("seconds", totals.elapsed_s || profile.elapsed_time_sec)],
        ["CPU, Python", format("seconds", totals.cpu_python_s)],
        ["CPU, native", format("seconds", totals.cpu_native_s)],
        ["CPU, kernel", format("seconds", totals.cpu_kernel_s)],
        ["Idle", format("seconds", totals.idle_s)],
        ["Waiting", format("waits", totals.wait_s)],
        ["Threads", threadsWords(profile, pythons)],
        ["Samples", samplingWords(sampling)],
        ["Paused", pausedWords(sampling)],
        ["Memory", profile.memory ? memoryWords(profile) : ""],
    ]);
}

function draw(profile) {
    const files = Object.entries(profile.files)
        .sort((a, b) => (b[1].percent_cpu_time ?? 0) - (a[1].percent_cpu_time ?? 0));
    const rows = files.flatMap((file) => [...file[1].lines, ...file[1].functions]);
    const columns = columnsShown(columnsOf(profile), rows);
    page.replaceChildren(element("h1", { textContent: shown(profile.program || "Profile") }),
                head(profile), element("p", {}, columnsLink()),
                ...files.map(([path, file], index) => fileSection(path, file, columns, index === 0)),
                ...notes(profile.notes));
}

window.addEventListener("hashchange", () => draw(data));
draw(data);
