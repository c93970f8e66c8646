// Names and keys for what the theme leaves without, which a screen reader would skip or misread.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("details > summary")) {
    if (!summary.textContent.trim() && !summary.hasAttribute("aria-label")) {
      const link = summary.closest("li")?.querySelector("a");
      summary.setAttribute("aria-label", link ? `Pages below ${link.textContent.trim()}` : "Pages below");
    }
  }
  // Its label says less than the button shows in a wide window: the keys that open the search.
  for (const button of document.querySelectorAll(".search-button-field")) {
    button.setAttribute("aria-label", button.textContent.trim().replace(/\s+/g, " "));
  }
  // In a narrow window charts scroll (site.css): the keys reach them, as they do the theme's scrolling tables.
  const narrow = matchMedia("(max-width: 700px)");
  const reach = () => {
    for (const chart of document.querySelectorAll('.bd-article p > img[src$=".svg"]')) {
      chart.parentElement.toggleAttribute("tabindex", narrow.matches);
      if (narrow.matches) chart.parentElement.tabIndex = 0;
    }
  };
  narrow.addEventListener("change", reach);
  reach();
});
