// Draws a map: its points, then what lies over them.
const renderer = new CanvasPoints();

// Many points are small; points grow when zooming in.
function pointRadius({ view }) {
  const usual = Math.min(4.5, Math.max(1.1, 90 / Math.sqrt(n)));
  return Math.min(9, usual * Math.pow(Math.max(1, view.scale / view.home), 0.35)) * view.ratio;
}

function drawMap(map) {
  renderer.draw(map, pointRadius(map));
  map.canvas.dataset.renderer = "canvas";
  drawOverlay(map);
}
