// What every page needs: elements from data, and the text of a value from its kind. Text only ever
// becomes text of an element, so that nothing of a profile is taken for a part of the page.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");

// Control characters, and marks that turn the direction of what follows, are shown by their code.
const CONTROL =
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

function shown(text) {
    return text.replace(CONTROL, (character) => {
        const code = character.charCodeAt(0);
        return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}`
                          : `\\u${code.toString(16).padStart(4, "0")}`;
    });
}

// A profile writes & < > of source text so, for readers that would take them for markup, and the
// backslash of what a source itself writes so.
function source(text) {
    const escapes = { "\\u0026": "&", "\\u003c": "<", "\\u003e": ">", "\\u005c": "\\" };
    return shown((text ?? "").replace(/\\u00(26|3c|3e|5c)/g, (escape) => escapes[escape])
        .replace(/[\r\n].*$/s, ""));
}

function element(name, properties = {}, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
}

// Nothing real is so large, but a profile may say so; what is larger still is no number at all.
const LARGE = 1e10, LARGE_SECONDS = 3600 * 1e7, LARGEST = 1e300;

const isNumber = (value) => Math.abs(value) <= LARGEST;

// Three digits, as C's %.3g writes them where there are many.
function large(value) {
    const [digits, power] = value.toExponential(2).split("e+");
    return `${Number(digits)}e+${power.padStart(2, "0")}`;
}

function fixed(value, digits) {
    return Math.abs(value) >= LARGE ? large(value) : value.toFixed(digits);
}

// Three digits where they say something; one behind the point, and never so few that it looks like
// nothing.
function three(value) {
    return fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

function tenths(value, unit) {
    return value > 0 && value < 0.05 ? `<0.1${unit}` : fixed(value, 1) + unit;
}

// In the largest of the units in which it is not too long for a number of three digits.
function scaled(value, step, units) {
    let unit = 0;
    for (; value >= 999.5 && unit + 1 < units.length; unit++)
        value /= step;
    return { value, unit: units[unit], isFirst: unit === 0 };
}

function count(value) {
    const in_units = scaled(value / 1000, 1000, "kMGTPE");
    return value < 100000 ? String(value) : three(in_units.value) + in_units.unit;
}

function seconds(value) {
    const minutes = Math.floor(value / 60 + 0.5);
    if (!isNumber(value) || value <= 0)
        return "";
    if (value >= LARGE_SECONDS)
        return `${large(value / 3600)}h`;
    if (value >= 3599.5)
        return `${Math.floor(minutes / 60)}h${String(minutes % 60).padStart(2, "0")}m`;
    if (value >= 0.0009995)
        return value >= 0.9995 ? `${three(value)}s` : `${three(1e3 * value)}ms`;
    return `${Math.max(1e6 * value, 1).toFixed(0)}us`;
}

function megabytes(value) {
    const amount = scaled(1048576 * value, 1024, "BKMGTP");
    return (amount.isFirst ? Math.max(amount.value, 1).toFixed(0) : three(amount.value)) + amount.unit;
}

// A bar for each cell of equal width, over the largest value in it.
function spark(points) {
    const cells = 10, most = [];
    points.forEach(([, value], index) => {
        const cell = points.length <= cells ? index : Math.floor(index * cells / points.length);
        most[cell] = Math.max(most[cell] ?? 0, isNumber(value) ? value : 0);
    });
    const top = Math.max(...most);
    return most.map((value) =>
        String.fromCharCode(0x2581 + (top > 0 ? Math.floor(value / top * 7 + 0.5) : 0))).join("");
}

// The two that took the most.
function waits(all) {
    return Object.entries(all).filter((entry) => seconds(entry[1])).sort((a, b) => b[1] - a[1])
        .slice(0, 2).map(([name, value]) => `${name} ${seconds(value)}`).join(", ");
}

function natives(list) {
    const file = (path) => shown(path.split("/").pop() || "[anonymous memory]");
    return list.map((one) => (one.symbol ? `${shown(one.symbol)} (${file(one.module)})`
                                         : file(one.module)) + ` ${seconds(one.seconds)}`).join(", ");
}

const positive = (text) => (value) => (value > 0 ? text(value) : "");

// By kind, of what is not nothing; as format.c has it, which tests/golden/format.txt holds to the
// same.
const KINDS = {
    flag: () => "yes",
    line: positive(String),
    count,
    percent: (value) => (value < 99.95 ? tenths(value, "%") : `${fixed(value, 0)}%`),
    points: positive((value) => `±${fixed(Math.max(value, 0.1), 1)}`),
    fraction: positive((value) => (value < 0.005 ? "<1%" : `${fixed(100 * value, 0)}%`)),
    seconds,
    megabytes: positive(megabytes),
    rate: positive((value) => `${megabytes(value)}/s`),
    number: (value) => tenths(value, ""),
    spark,
    moments: (value) => count(value.length),
    texts: (value) => shown(value.join(", ")),
    waits,
    native: natives,
    text: shown,
    source,
};

// No text for what says nothing: zero, an empty list, what a profile does not tell.
function format(kind, value) {
    const says = typeof value === "object" ? value !== null && Object.keys(value).length > 0
        : value && (typeof value !== "number" || isNumber(value));
    return says ? (KINDS[kind] ?? String)(value) : "";
}

const NUMBERS = new Set(["line", "count", "percent", "points", "fraction", "seconds", "megabytes",
                         "rate", "number"]);

function facts(pairs) {
    const list = element("dl");
    for (const [name, text] of pairs.filter((pair) => pair[1]))
        list.append(element("dt", { textContent: name }), element("dd", { textContent: text }));
    return list;
}

function notes(list) {
    const items = (list ?? []).map((note) => element("li", { textContent: shown(note) }));
    return items.length ? [element("h2", { textContent: "Notes" }), element("ul", {}, ...items)] : [];
}
