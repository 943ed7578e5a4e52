// The maps on the screen, one or two side by side, and what they share: colors, highlight, and the rows that are pointed at.
const colors = new Uint32Array(n); // of the points, 0xBBGGRR
let colorVersion = 0;
let highlighted = null; // 1 for each highlighted point; null if none is; a new array after every change
let dimmedColor = 0, background = 0;
let hovered = -1, pinned = -1; // rows, or −1
let neighborsShown = null; // { map: ids, data: ids } of the pinned point
const maps = [new MapView($("first-map"))];
let beside = null; // [index into about.maps, stage] of the second map
const layers = []; // what lies over the points besides: { draw(map), hover(map, event), press(map, event), release(), widen(map, box) }

function cssColor(color) {
  return `rgb(${color & 255} ${(color >> 8) & 255} ${(color >> 16) & 255})`;
}

function cssVariable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Call after the colors or the order of the points have changed.
function pointsChanged() {
  colorVersion++;
  redraw();
}

// A canvas that changes its size is empty, so the frame is drawn at once.
function resizeMaps() {
  const changed = maps.map((map) => map.resize());
  if (changed.includes(true)) drawFrame();
}

function resetViews() {
  for (const map of maps) {
    map.rotation = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
    if (map.isThreeDimensional) map.place();
    map.fitView();
  }
}

// The map that has the focus or was pointed at last.
let activeMap = maps[0];

// Shows a stage of a map beside the first map, below it on a narrow screen; null removes it.
async function setBeside(source, stage = null) {
  const shown = source === null || source === undefined ? null : [source, stage === null ? about.maps[source].stages.length - 1 : stage];
  beside = shown;
  const coordinates = shown && (await stageOf(...shown));
  if (beside !== shown) return; // another choice was faster
  if (!shown) {
    if (maps[1]) maps.pop().element.remove();
    activeMap = maps[0];
  } else {
    if (!maps[1]) addMap();
    maps[1].source = source;
    maps[1].coordinates = coordinates;
    maps[1].place(coordinates);
  }
  showCaptions();
  showTurnTool();
  resizeMaps();
  if (maps[1]) maps[1].fitView();
  stateChanged();
}

const textOfBeside = (shown) => (shown ? shown.join(",") : null);
const besideText = () => textOfBeside(beside);

function addMap() {
  const element = $("first-map").cloneNode(true);
  element.removeAttribute("id");
  for (const each of element.querySelectorAll("[id]")) each.removeAttribute("id");
  element.querySelector(".points").setAttribute("aria-label", "Second map, with the same points");
  $("maps").append(element);
  maps.push(new MapView(element));
  listenToPointer(maps[1]);
}

// Side by side, each map says what it shows.
function showCaptions() {
  const titles = [[0, currentStage()], ...(beside ? [beside] : [])].map(([source, stage]) => mapTitle(source, stage));
  maps.forEach((map, k) => {
    const caption = map.element.querySelector(".caption");
    caption.hidden = maps.length < 2;
    caption.textContent = titles[k];
  });
}

function mapTitle(source, stage) {
  const { title, stages: all } = about.maps[source];
  if (all.length < 2) return title;
  return about.maps.length < 2 ? all[stage].title : `${title}: ${all[stage].title}`;
}
