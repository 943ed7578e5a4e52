// Keys: every tool and view without a pointer, and a list of them.
const PAN_PIXELS = 60;
const HELP = [
  ["arrow keys", "move the map, or turn it with the turn tool"], ["+ and −", "zoom"], ["0", "show the whole map"], ["/", "search"],
  ["L, P, R", "lasso, pan, turn (a map of three components)"],
  ["D", "density"], ["T", "table"], ["[ and ]", "previous and next stage"], ["Enter", "pin the point at the center of the map"],
  ["N and B", "next neighbor of the pinned point, and back"], ...(about.model ? [["Ctrl and V", "place copied rows or a copied file on the map"]] : []), ["Escape", "close the card, then remove the last filter"], ["?", "this list"],
];

function showHelp() {
  $("help-keys").replaceChildren(...HELP.flatMap(([keys, effect]) => [make("dt", {}, keys), make("dd", {}, effect)]));
  $("help").showModal();
}

function pan(dx, dy) {
  showCard(-1);
  if (currentTool() === "turn" && activeMap.isThreeDimensional) turnBy(activeMap, -dx / 2, -dy / 2);
  else activeMap.panBy(dx, dy);
}

function stepStage(step) {
  const last = about.maps[0].stages.length - 1;
  goToStage(Math.max(0, Math.min(last, currentStage() + step)));
}

// The highlighted point nearest to the center of the map.
function pinCenter() {
  const map = activeMap, { width, height } = map.view;
  pinCard(map.nearestPoint(width / 2, height / 2, Math.hypot(width, height)), map);
}

// The card first, then the table if the focus is in it, then the last filter.
function escape() {
  if (layers.some((layer) => layer.release())) return;
  if (pinned >= 0) pinCard(-1);
  else if (isTableOpen() && $("table").contains(document.activeElement)) showTable(false);
  else clearLastFilter();
}

const KEYS = {
  l: () => useTool("lasso"), p: () => useTool("pan"), r: () => useTool("turn"),
  "+": () => activeMap.zoom(1.6), "=": () => activeMap.zoom(1.6), "-": () => activeMap.zoom(1 / 1.6), 0: () => resetViews(),
  d: () => setDensity(!densityOn()), t: () => toggleTable(), "[": () => stepStage(-1), "]": () => stepStage(1),
  "/": () => $("search").focus(), "?": showHelp, n: () => walkNeighbors(1), b: () => walkNeighbors(-1), Escape: escape,
};

// These belong to the map: elsewhere they scroll, or press a button.
const MAP_KEYS = {
  ArrowLeft: () => pan(PAN_PIXELS, 0), ArrowRight: () => pan(-PAN_PIXELS, 0),
  ArrowUp: () => pan(0, PAN_PIXELS), ArrowDown: () => pan(0, -PAN_PIXELS),
  PageUp: () => stepStage(-1), PageDown: () => stepStage(1), Enter: pinCenter,
};

function toggleTable() {
  showTable(!isTableOpen());
  if (isTableOpen()) $("table-scroller").focus();
}

// Escape leaves a field; in the search it ends the search too.
function leaveField(field) {
  field.blur();
  if (field === $("search")) search("");
}

function listenToKeyboard() {
  $("close-help").addEventListener("click", () => $("help").close());
  document.addEventListener("keydown", (event) => {
    const { target, key } = event, isField = [HTMLInputElement, HTMLSelectElement, HTMLTextAreaElement].some((kind) => target instanceof kind);
    if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
    if (isField) return key === "Escape" ? leaveField(target) : undefined;
    const isOnMap = target === document.body || target.classList.contains("points");
    const action = (isOnMap && MAP_KEYS[key]) || KEYS[key.length === 1 ? key.toLowerCase() : key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
