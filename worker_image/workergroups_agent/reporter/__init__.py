"""The reporter: `orders` brings plan and code to the executor, `status` takes reports to the custom resources."""
