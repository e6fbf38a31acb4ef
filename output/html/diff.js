// Two profiles side by side: the whole, then files, functions and lines by how much a metric
// changed, which a choice at the top names.
"use strict";

const MARKS = { same: "", moved: "moved", edited: "edited", added: "only new", removed: "only old" };
const HEADINGS = ["old", "new", "change", "", "margin", "", ""];

function value(kind, number) {
    return number === null || number === undefined ? "?" : format(kind, number) || "0";
}

function signed(kind, number) {
    if (number === null || number === undefined)
        return "?";
    return (number > 0 ? "+" : number < 0 ? "-" : "") + (format(kind, Math.abs(number)) || "0");
}

function percent(change) {
    if (change.percent !== null && change.percent !== undefined)
        return change.change ? `${change.percent > 0 ? "+" : ""}${change.percent.toFixed(1)}%` : "";
    return change.change ? "new" : "";
}

function changeCells(kind, change) {
    const within = change.change && !change.significant;
    const className = !change.change || within ? "quiet" : change.change > 0 ? "more" : "less";
    const number = (text, extra = "") =>
        element("td", { className: `number ${extra}`, textContent: text });
    return [number(value(kind, change.old)), number(value(kind, change.new)),
            number(signed(kind, change.change), className), number(percent(change), className),
            number(change.error ? `±${format(kind, change.error)}` : ""),
            element("td", { className: "quiet", textContent: within ? "within the margin" : "" })];
}

function table(kind, rows) {
    const head = element("thead", {}, element("tr", {}, ...HEADINGS.map((text) =>
        element("th", { className: "number", textContent: text }))));
    const body = element("tbody", { className: kind });
    body.append(...rows);
    return element("table", {}, head, body);
}

function place(row) {
    const path = row.file ?? row.old_file;
    const line = row.lineno ?? row.old_lineno;
    const was = row.file && row.old_file && row.file !== row.old_file ? `, was ${row.old_file}` : "";
    return shown(line ? `${path.split("/").pop()}:${line}` : path + was);
}

function compared(row, metric) {
    const code = row.name ?? row.line;
    const what = [element("span", { textContent: `${place(row)} ` }),
                  element("span", { className: "quiet", textContent: `${MARKS[row.state]} ` })];
    if (code !== undefined)
        what.push(element("code", { textContent: shown(code.trim()) }));
    if (row.name && row.old_name && row.name !== row.old_name)
        what.push(", was ", element("code", { textContent: shown(row.old_name) }));
    return element("tr", {}, ...changeCells(metric.kind, row.changes[metric.key]),
                   element("td", {}, ...what));
}

function section(title, kind, rows, metric) {
    const size = (row) => Math.abs(row.changes[metric.key]?.change ?? 0);
    const changed = rows.filter((row) => size(row) > 0).sort((a, b) => size(b) - size(a));
    const heading = element("h2", { textContent: changed.length ? title : `${title}: no change` });
    return changed.length ? [heading, table(kind, changed.map((row) => compared(row, metric)))]
                          : [heading];
}

function totals() {
    const rows = data.metrics.filter((metric) => data.totals[metric.key]?.old ||
                                                 data.totals[metric.key]?.new)
        .map((metric) => element("tr", {}, ...changeCells(metric.kind, data.totals[metric.key]),
                                 element("td", { textContent: metric.title, title: metric.help })));
    return table("totals", rows);
}

function sections(metric) {
    return [...section("Files", "files", data.files, metric),
            ...section("Functions", "functions", data.functions, metric),
            ...section("Lines", "lines", data.lines, metric)];
}

function draw() {
    const lists = element("div");
    const used = data.metrics.filter((metric) =>
        data.lines.some((row) => row.changes[metric.key]?.change));
    const choice = element("select", {}, ...used.map((metric) =>
        element("option", { value: metric.key, textContent: metric.title, title: metric.help })));
    const show = () => {
        const metric = data.metrics.find((each) => each.key === choice.value);
        lists.replaceChildren(...(metric ? sections(metric) : []));
    };
    choice.addEventListener("change", show);
    page.append(element("h1", { textContent: "Two profiles side by side" }),
                facts([["old", shown(data.old.name)], ["new", shown(data.new.name)]]), totals(),
                element("p", {}, "by ", choice), lists, ...notes(data.notes));
    show();
}

draw();
