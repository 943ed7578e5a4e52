// What is shown, in the fragment of the address: the same address shows the same again, and nothing is stored elsewhere.
const WRITE_AFTER = 250; // milliseconds without a change
let writeTimer = null, isRestoring = true; // until the first state is in place

// The map beside the first one on a page that was just opened: the last stage of another map, if there is one.
const firstBeside = () => (about.maps.length > 1 ? [1, about.maps[1].stages.length - 1] : null);

// Of an address: "nothing", a map and its stage, or null where it does not say.
function besideIn(text, numbers) {
  if (text === "nothing") return null;
  return numbers && about.maps[numbers[0]] && about.maps[numbers[0]].stages[numbers[1]] ? numbers : firstBeside();
}

function readFragment() {
  const read = new URLSearchParams(location.hash.slice(1));
  const number = (text) => (text && Number.isFinite(Number(text)) ? Number(text) : null);
  const numbers = (name) => {
    const found = (read.get(name) || "").split(",").map(number);
    return found.includes(null) ? null : found;
  };
  const view = numbers("view"), pin = number(read.get("pinned")), stage = number(read.get("stage"));
  return {
    theme: ["light", "dark"].includes(read.get("theme")) ? read.get("theme") : null,
    color: read.get("color"), scale: read.get("scale"), render: read.get("render"),
    view: view && view.length === 3 ? view : null,
    stage: stage !== null && about.maps[0].stages[stage] ? stage : null,
    beside: besideIn(read.get("beside"), numbers("beside")),
    pinned: Number.isInteger(pin) && pin >= 0 && pin < n ? pin : -1,
    density: read.get("density") === "1",
  };
}

// Only what differs from a page that was just opened.
function fragmentText() {
  const { view } = maps[0], last = about.maps[0].stages.length - 1, stage = currentStage(), colorName = colorColumn ? colorColumn.name : "";
  const short = (value) => String(Number(value.toPrecision(5)));
  const parts = {
    theme: chosenTheme,
    color: colorName === (about.color || "") ? null : colorName,
    scale: colorColumn && isScale(colorColumn) && colorScale !== (colorColumn.scale || "linear") ? colorScale : null,
    view: view.isHome ? null : [view.x, view.y, view.scale / view.home].map(short).join(","),
    stage: stage === last ? null : stage,
    beside: besideText() === textOfBeside(firstBeside()) ? null : besideText() || "nothing",
    pinned: pinned < 0 ? null : pinned,
    density: densityOn() ? 1 : null,
    render: wanted.render,
  };
  const given = Object.entries(parts).filter(([, value]) => value !== null);
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString().replaceAll("%2C", ",");
}

function writeFragment() {
  const text = fragmentText();
  if (text !== location.hash.slice(1)) history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}

// Call after a change of the theme, color, view, stage, maps or pinned point.
function stateChanged() {
  if (isRestoring) return;
  clearTimeout(writeTimer);
  writeTimer = setTimeout(writeFragment, WRITE_AFTER);
}

// Shows what needs the whole page decoded: a map beside, the density and the pinned point.
async function restore(state) {
  isRestoring = true;
  if (textOfBeside(state.beside) !== besideText()) await showBeside(...(state.beside || [null, null]));
  if (state.density !== densityOn()) setDensity(state.density);
  if (state.pinned >= 0 || pinned >= 0) pinCard(state.pinned);
  isRestoring = false;
}

// Somebody changed the address, or went back.
async function followFragment() {
  const state = readFragment();
  isRestoring = true;
  chooseTheme(state.theme);
  chooseColor(state.color);
  colorBy(colorChoice(), state.scale);
  await goToStage(state.stage === null ? about.maps[0].stages.length - 1 : state.stage);
  resetViews();
  if (state.view) showView(state.view);
  await restore(state);
}

function showView([x, y, zoomed]) {
  const { view } = maps[0];
  Object.assign(view, { x, y, scale: view.home * Math.max(MIN_ZOOM, Math.min(MAX_ZOOM, zoomed)), isHome: false });
  maps[0].clamp();
  redraw();
}
