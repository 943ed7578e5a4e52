// The size and the opacity of points: small and translucent where many lie close at this zoom, larger where few do.
const DENSITY_SAMPLE = 20000; // points from which the usual density is estimated
const SMALLEST = Math.max(1, Math.min(3, 60 / Math.sqrt(n))), LARGEST = 9; // radius in pixels
const pointStyle = { size: 1, opacity: 1 }; // factors, set in the panel

// How many points lie in a unit of area around a typical point, among all or among the highlighted ones.
function usualDensity(map, ids) {
  const { now: { x, y }, box } = map, stride = Math.max(1, Math.floor(ids.length / DENSITY_SAMPLE));
  const side = Math.max(4, Math.min(96, Math.round(Math.sqrt(ids.length / stride / 3)))), counts = new Uint32Array(side * side);
  const width = box.right - box.left || 1e-6, height = box.top - box.bottom || 1e-6;
  let taken = 0, sum = 0;
  for (let k = 0; k < ids.length; k += stride, taken++) {
    const column = Math.min(side - 1, Math.floor(((x[ids[k]] - box.left) / width) * side));
    counts[Math.min(side - 1, Math.floor(((y[ids[k]] - box.bottom) / height) * side)) * side + column]++;
  }
  for (const count of counts) sum += count * count;
  return taken ? ((sum / taken) * (ids.length / taken)) / ((width * height) / (side * side)) : 0;
}

// Estimated once for points in one place, and again after the highlight has changed.
function densities(map) {
  const known = map.densities;
  if (known && known.version === map.version && known.highlighted === highlighted) return known;
  const bright = highlighted ? shuffled.filter((i) => highlighted[i]) : null;
  map.densities = {
    version: map.version, highlighted, all: usualDensity(map, shuffled), bright: bright ? usualDensity(map, bright) : 0,
  };
  return map.densities;
}

// Radius in pixels of the screen and opacity, for points that lie this close.
function lookFor(density, view) {
  const apart = view.home / Math.sqrt(density || 1e-9), zoomed = Math.max(1, view.scale / view.home);
  const radius = Math.min(LARGEST, Math.min(4.5, Math.max(SMALLEST, 0.6 * apart)) * Math.pow(zoomed, 0.4));
  const overlap = Math.PI * ((radius * view.home) / (apart * view.scale)) ** 2;
  const opacity = Math.max(0.18, Math.min(0.9, 0.95 / Math.sqrt(1 + overlap / 4)));
  return { radius: radius * pointStyle.size, opacity: opacity * pointStyle.opacity };
}

// How the dimmed and the other points are drawn at this zoom.
function pointLook(map) {
  const { all, bright } = densities(map), usual = lookFor(all, map.view);
  if (!highlighted) return { ...usual, dimmed: usual };
  const shown = lookFor(bright, map.view);
  return {
    radius: Math.max(usual.radius, Math.min(1.6 * usual.radius + 1, shown.radius)), opacity: Math.max(0.6 * pointStyle.opacity, shown.opacity),
    dimmed: { radius: usual.radius, opacity: Math.min(0.5, usual.opacity) },
  };
}
