// A list of classes with their counts, which filters: in the legend and below each column of classes.
const MAX_LISTED_CLASSES = 400; // more are found by typing a part of their name
const FILTER_BOX_FROM = 13; // classes
const collator = new Intl.Collator("en", { numeric: true });
const CLASS_ORDERS = {
  "natural order": null,
  "by count": (a, b) => b.count - a.count,
  "by name": (a, b) => collator.compare(a.name, b.name),
};

// How many points of each class pass a mask; all points without one.
function countClasses(column, mask) {
  const counts = new Uint32Array(column.names.length), { values } = column;
  for (let i = 0; i < n; i++) if (!mask || mask[i]) counts[values[i]]++;
  return counts;
}

const isTouch = () => matchMedia("(pointer: coarse)").matches;

// A click picks a class alone, or no class if it was alone already; with shift, or by touch, it adds or removes the class.
function pickClass(column, code, add) {
  const { classes: before = new Set() } = filters.get(filterName(column)) || {};
  const picked = add ? new Set(before) : new Set(), wasAlone = before.size === 1 && before.has(code);
  if (add && before.has(code)) picked.delete(code);
  else if (add || !wasAlone) picked.add(code);
  filterClasses(column, picked);
}

// Makes the list; its `update` shows the counts and picks of the filters in force.
function classList(column, { dots }) {
  const all = column.counts || (column.counts = countClasses(column, null));
  const state = { order: "natural order", text: "" };
  const list = make("div", { class: "classes", role: "group", "aria-label": `Classes of ${column.name}` });
  const rest = make("p", { class: "quiet" }), buttons = new Map();
  const fillList = () => {
    const known = column.names.map((name, code) => ({ name, code, count: all[code] }));
    const entries = known.filter(({ name }) => name.toLowerCase().includes(state.text));
    if (CLASS_ORDERS[state.order]) entries.sort(CLASS_ORDERS[state.order]);
    const table = dots ? classColors(column) : null, most = all.reduce((a, b) => Math.max(a, b), 1);
    buttons.clear();
    for (const entry of entries.slice(0, MAX_LISTED_CLASSES)) buttons.set(entry.code, classButton(column, entry, table, most));
    list.replaceChildren(...buttons.values());
    const hidden = entries.length - buttons.size, isEmpty = state.text && !entries.length;
    rest.textContent = isEmpty ? "no class has this name" : hidden > 0 ? `${grouped(hidden)} more: type a part of their name` : "";
    update();
  };
  const update = () => {
    const filter = filters.get(filterName(column)), mask = passing(filterName(column)), counts = mask ? countClasses(column, mask) : all;
    for (const [code, button] of buttons) {
      button.setAttribute("aria-pressed", String(!filter || !filter.classes || filter.classes.has(code)));
      button.querySelector(".count").textContent = grouped(counts[code]);
      button.style.setProperty("--share", counts[code] / Math.max(1, all[code]));
    }
  };
  const element = make("div", { class: "class-list" }, column.names.length > 2 ? classTools(column, state, fillList) : null, list, rest);
  fillList();
  return { element, update };
}

// Sorts the list, and narrows a long one to the names with a text.
function classTools(column, state, fillList) {
  const orders = Object.keys(CLASS_ORDERS).map((name) => new Option(name)), count = column.names.length;
  const sort = make("select", { "aria-label": `Sort the classes of ${column.name}` }, ...orders);
  sort.addEventListener("change", () => {
    state.order = sort.value;
    fillList();
  });
  if (count < FILTER_BOX_FROM) return make("div", { class: "line small" }, make("span", { class: "quiet" }, plural(count, "class")), sort);
  const box = make("input", { type: "search", placeholder: `find among ${grouped(count)}`, autocomplete: "off" });
  box.setAttribute("aria-label", `Find classes of ${column.name}`);
  box.addEventListener("input", () => {
    state.text = box.value.trim().toLowerCase();
    fillList();
  });
  return make("div", { class: "line small" }, box, sort);
}

const isMissing = (column, code) => column.missing && code === column.names.length - 1;

function classButton(column, { name: given, code, count }, table, most) {
  const name = isMissing(column, code) ? "no label" : given;
  const title = `${name}: ${plural(count, "point")}. Click to show only these, shift-click to add or remove them`;
  const button = makeButton(
    { title, class: isMissing(column, code) ? "none" : null, style: `--part: ${count / most}` },
    table ? makeDot(table[code]) : null,
    make("span", { class: "name" }, name), make("span", { class: "count" }),
  );
  return onClick(button, (event) => pickClass(column, code, event.shiftKey || event.ctrlKey || event.metaKey || isTouch()));
}
